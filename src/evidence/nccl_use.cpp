#include "evidence/nccl_use.h"

#include <algorithm>

#include "base/text.h"

namespace harness::evidence {
namespace {

// Formats: NCCL 2.7 to 2.30 (src/init.cc, src/transport/*.cc, src/debug.cc). nccl/log.h reads the facts per host; this
// file reads data that depends on the sender: ranks, hosts, pairs, communicators and the order of warnings.

constexpr std::size_t most_named_hosts = 2048, most_processes = 1u << 17, most_warnings = 1000, most_gpus = 128;
constexpr std::size_t bytes_of_a_host = 1u << 15, most_connections = 1u << 18, most_of_a_ring = 1024;
constexpr std::int64_t most_ranks = 1 << 20;

bool all_digits(std::string_view text) {
  return !text.empty() && text.find_first_not_of("0123456789") == std::string_view::npos;
}

// Returns the address or host after "peer " or "to ": "10.0.0.18<43210>", "fe80::1%ib0<43210>", "n17<50122>".
std::string peer_in(std::string_view message) {
  for (const std::string_view before :
       {"from peer ", "remote peer ", "onnect to ", "Connecting to ", "recv from ", "send to "}) {
    Cursor c{message};
    if (!c.after(before)) continue;
    std::string_view peer = c.until("<| ,");
    if (!c.rest.starts_with('<')) peer = peer.substr(0, peer.find(':'));
    if (!peer.empty() && peer.size() < 256) return std::string(peer);
  }
  return "";
}

// Reads "[1]" after a rank number: its GPU, up to NCCL 2.18 its bus address.
std::string gpu_of(Cursor& c) {
  return c.literal("[") ? fmt::format("GPU {}", c.until("]").substr(0, 16)) : "";
}

}  // namespace

const NcclUse::Communicator* NcclUse::largest() const {
  const auto found = std::ranges::max_element(communicators, {}, [](const auto& row) { return row.second.ranks; });
  return found == communicators.end() ? nullptr : &found->second;
}

std::vector<const NcclUse::Host*> NcclUse::named_hosts() const {
  std::vector<const Host*> named;
  for (const Host& host : hosts) {
    if (!host.name.empty()) named.push_back(&host);
  }
  return named;
}

std::string NcclUse::anywhere(std::string_view fact) const {
  for (const Host& host : hosts) {
    if (std::string value = host.seen.fact(fact); !value.empty()) return value;
  }
  return "";
}

bool NcclUse::Host::on_sockets() const {
  const std::string network = seen.fact("network");
  return !network.empty() && std::ranges::all_of(split_text(network, nccl::fact_separator),
                                                 [](std::string_view name) { return name.starts_with("Socket"); });
}

std::string NcclUse::Host::direct_text() const {
  const auto phrase = [](const char* does, const Ends& ends) {
    if (ends.direct == ends.all) return fmt::format("{} with it", does);
    return ends.direct == 0 ? fmt::format("{} without it", does)
                            : fmt::format("{} with it on {} of {} connections", does, ends.direct, ends.all);
  };
  if (sends.all + receives.all == 0) return "";
  if (!uses_direct()) return "does neither";
  if (sends.all == 0) return phrase("receives", receives);
  if (receives.all == 0) return phrase("sends", sends);
  if (sends.direct == sends.all && receives.direct == receives.all) return "sends and receives with it";
  return phrase("sends", sends) + " and " + phrase("receives", receives);
}

std::map<NcclUse::Pair, std::set<int>> NcclUse::Communicator::ring_crossings() const {
  std::map<Pair, std::set<int>> of_rings = connections.crossings;
  std::erase_if(of_rings, [&](const auto& crossing) { return !connections.in_rings.contains(crossing.first); });
  return of_rings.empty() ? connections.crossings : of_rings;
}

std::size_t NcclUse::Host::devices() const {
  const std::string listed = seen.fact("network_devices");
  return listed.starts_with("none") ? 0 : words_of(listed).size();
}

// "[2026-05-02 10:11:12] n17:901:955 [3] transport/net_ib.cc:2521 "
NcclUseReader::Origin NcclUseReader::origin_of(std::string_view prefix) {
  Origin origin;
  if (const std::size_t open = prefix.rfind("[20"); open != std::string_view::npos) {
    const std::size_t close = prefix.find(']', open);
    constexpr std::size_t longest = 40;
    if (close != std::string_view::npos && close - open < longest)
      origin.time = prefix.substr(open + 1, close - open - 1);
  }
  for (const std::string_view word : words_of(prefix)) {
    const std::size_t thread = word.rfind(':');
    if (thread == std::string_view::npos || thread == 0 || !all_digits(word.substr(thread + 1))) continue;
    const std::size_t process = word.rfind(':', thread - 1);
    if (process == std::string_view::npos || process == 0) continue;
    if (!all_digits(word.substr(process + 1, thread - process - 1))) continue;
    // The line before may lack its end, as of a progress bar: "?it/s]n1:20:21". A column may precede: 17,"n1:20:21.
    std::size_t host = word.find_last_of("]|\",:", process - 1) + 1;
    if (host == process) host = 0;
    constexpr std::size_t longest = 255;
    origin.host = word.substr(host, std::min(process - host, longest));
    Cursor c{prefix.substr(static_cast<std::size_t>(word.data() + word.size() - prefix.data()))};
    c.skip_blanks();
    const std::string_view gpu = c.literal("[") && c.rest.find(']') < 10 ? c.until("]") : std::string_view();
    origin.rank = fmt::format("{} [{}]", word.substr(host, std::min(thread - host, longest)), gpu);
    origin.place = c.rest.substr(0, 120);
  }
  Cursor c{prefix.substr(prefix.rfind('[') + 1)};  // "[3] transport/net_ib.cc:2521 "
  const std::string_view gpu = c.until("]");
  if (origin.host.empty() && all_digits(gpu) && c.rest.starts_with(']') && words_of(c.rest).size() < 3)
    origin = {std::string(NcclUse::unnamed), fmt::format("[{}]", gpu), origin.time, std::string(c.rest)};
  return origin;
}

std::size_t NcclUseReader::host_at(const std::string& name) {
  const auto found = places_.find(name);
  if (found != places_.end()) return found->second;
  if (use_.hosts.size() >= most_named_hosts) {
    use_.cut = true;
    return 0;  // the host without a name
  }
  use_.hosts.push_back({.name = name});
  readers_.emplace_back(bytes_of_a_host);
  places_.emplace(name, use_.hosts.size() - 1);
  return use_.hosts.size() - 1;
}

// Returns where the line of another rank begins in one that lacks its end: "… Using network IBn2:20:21 [0] NCCL INFO
// …". npos: no host that is known stands before the next marker.
std::size_t NcclUseReader::other_line_in(std::string_view text) const {
  const std::size_t first = text.find("NCCL "),
                    next = std::min(text.find(" NCCL INFO ", first), text.find(" NCCL WARN ", first));
  if (next >= text.size()) return std::string_view::npos;
  const Origin origin = origin_of(text.substr(first, next - first));
  std::string_view known;
  for (const auto& [name, place] : places_)
    if (name.size() > known.size() && origin.host.ends_with(name)) known = name;
  if (known.empty()) return std::string_view::npos;
  return text.rfind(origin.rank.substr(0, origin.rank.find(' ')), next) + origin.host.size() - known.size();
}

bool NcclUseReader::line(const Line& line) {
  bool any = false;
  for (std::string_view rest = line.text; !rest.empty();) {
    const std::size_t other = std::min(other_line_in(rest), rest.size());
    any = line_of_rank({rest.substr(0, other), line.number, line.repeats}) || any;
    rest.remove_prefix(other);
  }
  return any;
}

bool NcclUseReader::line_of_rank(const Line& line) {
  const std::string_view text = line.text;
  const std::size_t nccl = text.find("NCCL ");
  if (nccl == std::string_view::npos) return false;
  if (nccl == 0 && text.starts_with("NCCL version ")) {
    readers_[host_at("")].line(text);
    return false;
  }
  constexpr std::string_view info = "NCCL INFO ", warn = "NCCL WARN ";
  const std::string_view marked = text.substr(nccl);
  const bool warns = marked.starts_with(warn);
  if (!warns && !marked.starts_with(info)) return false;
  const Origin origin = origin_of(text.substr(0, nccl));
  const std::size_t host = host_at(origin.host);
  readers_[host].line(text);
  use_.thinned = use_.thinned || line.repeats;
  use_.lost_hosts = use_.lost_hosts || origin.host == NcclUse::unnamed;
  std::string_view message = marked.substr(info.size());
  for (const std::string_view marker : {" NCCL INFO ", " NCCL WARN "})  // ranks whose output interleaved in one line
    message = message.substr(0, message.find(marker));
  if (warns) {
    warning(message, origin, line.number);
    return !origin.host.empty();
  }
  communicator(message, origin);
  connection(message, origin);
  ring(message, origin);
  // "GPU Direct RDMA Disabled for GPU 3 / HCA 1 (distance 7 > 4)", logged also for pairs that NCCL never uses
  Cursor c{message};
  if (c.after("GPU Direct RDMA Disabled for ") && c.after("(distance ") && use_.hosts[host].direct_reason.empty())
    use_.hosts[host].direct_reason = c.until(")").substr(0, 60);
  return !origin.host.empty();
}

// "ncclCommInitRankConfig comm 0x5500 rank 0 nranks 4 cudaDev 0 nvmlDev 0 busId 1b000 commId 0xabc - Init START"; of a
// split since 2.23 "… busId 1b000 parent 0x5400 splitCount 1 color 7 key 0- Init START", until 2.25 without splitCount;
// since 2.20 "comm 0x5500 rank 0 nRanks 4 nNodes 2 localRanks 2 localRank 0 MNNVL 0".
void NcclUseReader::communicator(std::string_view message, const Origin& origin) {
  Cursor c{message};
  std::int64_t rank = 0, ranks = 0;
  if (!c.after("comm 0x") || !c.after(" rank ") || !c.integer(rank)) return;
  const bool described = c.literal(" nRanks ");
  if (!described && !c.literal(" nranks ")) return;
  if (!c.integer(ranks) || ranks < 1 || ranks > most_ranks || rank < 0 || rank >= ranks) return;
  if (has_any(message, "Destroy |Abort |Revoke")) return;  // it ends, and the line does not name it
  if (communicator_of_.size() >= most_processes && !communicator_of_.contains(origin.rank)) return;
  std::string& current = communicator_of_[origin.rank];
  const bool completes = message.ends_with("Init COMPLETE");
  if (!completes) take_connections(origin.rank);  // connections of the previous communicator
  Cursor named = c, child = c;
  if (named.after(" commId ")) {
    current = std::string(named.word().substr(0, 40));
  } else if (child.after(" parent ")) {
    child.word();  // an address, which differs between ranks
    const std::string_view color = child.rest.substr(0, child.rest.find(" key "));
    current = fmt::format("{} ranks{}", ranks, color.substr(0, 60));
  } else if (const auto known = use_.communicators.find(current);
             known == use_.communicators.end() || known->second.ranks != ranks) {
    current = fmt::format("{} ranks", ranks);
    use_.communicators_may_merge = true;
  }
  if (use_.communicators.size() >= most_processes && !use_.communicators.contains(current)) return;
  NcclUse::Communicator& own = use_.communicators[current];
  own.ranks = std::max(own.ranks, ranks);
  if (kept_ < most_connections && own.host_of.emplace(rank, host_at(origin.host)).second) ++kept_;
  if (described) {
    if (c.literal(" nNodes ")) c.integer(own.nodes);
  } else if (message.ends_with("Init START")) {
    own.started.insert(rank);
  } else if (completes) {
    own.several = !own.complete.insert(rank).second || own.several;
    take_connections(origin.rank);
  }
}

void NcclUseReader::take_connections(const std::string& rank) {
  const auto current = communicator_of_.find(rank);
  if (current == communicator_of_.end() || current->second.empty()) return;
  auto found = open_connections_.extract(rank);
  if (found.empty()) return;
  NcclUse::Connections& all = use_.communicators[current->second].connections;
  for (auto& [pair, adapters] : found.mapped().crossings) all.crossings[pair].merge(adapters);
  all.in_rings.merge(found.mapped().in_rings);
}

// "Channel 00/02 : 0 1 2 3"; the end may be cut
void NcclUseReader::ring(std::string_view message, const Origin& origin) {
  Cursor c{message};
  if (!c.literal("Channel ") || !c.after(" :") || contains(c.rest, "...")) return;
  std::vector<std::int64_t> ranks;
  for (const std::string_view word : words_of(c.rest, most_of_a_ring)) {
    const auto rank = number_in<std::int64_t>(word);
    if (!rank) return;
    ranks.push_back(*rank);
  }
  if (ranks.size() < 2 || kept_ + ranks.size() > most_connections) return;
  std::set<NcclUse::Pair>& pairs = open_connections_[origin.rank].in_rings;
  for (std::size_t i = 0; i < ranks.size(); ++i) pairs.emplace(ranks[i], ranks[(i + 1) % ranks.size()]);
  kept_ += ranks.size();
}

// "Channel 00/0 : 1[1] -> 2[0] [send] via NET/IB/0(2)/GDRDMA"; before NCCL 2.7 "Ring 00 : 15 -> 0 [send] via NET/IB/0"
void NcclUseReader::connection(std::string_view message, const Origin& origin) {
  Cursor c{message};
  std::int64_t from = 0, to = 0;
  if ((!c.literal("Channel ") && !c.literal("Ring ")) || !c.after(" : ") || !c.integer(from)) return;
  const std::string sender = gpu_of(c);
  if (!c.after("-> ") || !c.integer(to)) return;
  const std::string receiver = gpu_of(c);
  const bool receives = contains(c.rest, "[receive] ");
  if (!c.after(" via ")) return;
  NcclUse::Host& host = use_.hosts[host_at(origin.host)];
  const bool by_peer = c.rest.starts_with("P2P/");
  if ((by_peer || c.rest.starts_with("SHM") || c.rest.starts_with("direct shared memory")) &&
      !contains(c.rest, "MNNVL")) {
    for (const std::string& name : {sender, receiver}) {
      if (host.gpus.size() >= most_gpus && !host.gpus.contains(name)) continue;
      ++(by_peer ? host.gpus[name].by_peer : host.gpus[name].through_memory);
    }
  }
  if (!c.literal("NET/")) return;
  host.networked = true;
  if (!c.rest.starts_with("Socket")) {
    NcclUse::Ends& ends = receives ? host.receives : host.sends;
    ++ends.all;
    ends.direct += contains(c.rest, "/GDRDMA") ? 1 : 0;
  }
  int adapter = -1;
  if (!c.after("/") || !c.integer(adapter) || adapter < 0 || adapter > 4096) return;
  host.adapters.insert(adapter);
  if (receives) return;
  if (kept_ >= most_connections) {
    use_.cut = true;
    return;
  }
  if (open_connections_[origin.rank].crossings[{from, to}].insert(adapter).second) ++kept_;
}

void NcclUseReader::warning(std::string_view message, const Origin& origin, std::int64_t line) {
  NcclUse::Warning warning{.kind = nccl_warning_kind(fmt::format("{} {}", origin.place, message)),
                           .host = origin.host,
                           .peer = peer_in(message),
                           .text = std::string(message.substr(0, 240)),
                           .time = origin.time,
                           .line = line};
  const std::string key =
      fmt::format("{}|{}|{}", warning.kind != nullptr ? warning.kind->name : std::string_view(warning.text),
                  warning.host, warning.peer);
  const auto [place, is_new] = warning_places_.emplace(key, use_.warnings.size());
  if (is_new && use_.warnings.size() >= most_warnings) {
    warning_places_.erase(place);
    return;
  }
  if (is_new) use_.warnings.push_back(std::move(warning));
  ++use_.warnings[place->second].count;
}

bool NcclUseReader::last_error(const Line& line) {
  const bool known = nccl_warning_kind(line.text) != nullptr;
  if (known && last_error_.empty()) {
    last_error_ = line.text;
    last_error_line_ = line.number;
  }
  return known;
}

NcclUse NcclUseReader::finish() {
  if (use_.warnings.empty() && !last_error_.empty()) warning(last_error_, {}, last_error_line_);
  for (std::size_t i = 0; i < readers_.size(); ++i) use_.hosts[i].seen = readers_[i].finish();
  // Timestamps have one format that sorts as text. If any warning lacks one, all keep their order of reading.
  const bool timed = std::ranges::none_of(use_.warnings, [](const auto& w) { return w.time.empty(); });
  if (timed) std::ranges::stable_sort(use_.warnings, {}, &NcclUse::Warning::time);
  for (const auto& [rank, communicator] : communicator_of_) take_connections(rank);
  for (auto& [id, communicator] : use_.communicators) {
    if (communicator.several || use_.lost_hosts) continue;  // their ranks are on different hosts
    for (const auto& [pair, adapters] : communicator.connections.crossings) {
      const auto from = communicator.host_of.find(pair.first), to = communicator.host_of.find(pair.second);
      if (from == communicator.host_of.end() || to == communicator.host_of.end() || from->second != to->second)
        continue;
      ++use_.hosts[from->second].inner_network;
    }
  }
  return std::move(use_);
}

}  // namespace harness::evidence
