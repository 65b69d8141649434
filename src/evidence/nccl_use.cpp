#include "evidence/nccl_use.h"

#include <algorithm>
#include <array>

#include "base/error.h"
#include "base/text.h"

// Formats: NCCL 2.7 to 2.30 (src/init.cc, src/transport/*.cc, src/debug.cc). What NCCL says of itself per host is read
// by nccl/log.h; here is what needs to know who says it: ranks, hosts, pairs, communicators and the order of warnings.

namespace harness::evidence {
namespace {

constexpr std::size_t most_names_of_hosts = 2048, most_processes = 1u << 17, most_warnings = 1000;
constexpr std::size_t bytes_of_a_host = 1u << 15;
constexpr std::int64_t most_ranks = 1 << 20;

bool all_digits(std::string_view text) {
  return !text.empty() && text.find_first_not_of("0123456789") == std::string_view::npos;
}

// The address or host behind "peer " or "to ": "10.0.0.18<43210>", "n17<50122>".
std::string peer_in(std::string_view message) {
  for (const std::string_view before :
       {"from peer ", "remote peer ", "onnect to ", "Connecting to ", "recv from ", "send to "}) {
    Cursor c{message};
    if (!c.after(before)) continue;
    const std::string_view peer = c.until("<| ,:");
    if (!peer.empty() && peer.size() < 256) return std::string(peer);
  }
  return "";
}

// "misc/socket.cc:505 -> 2 (Operation now in progress)": a place in NCCL that hands an error upwards.
void add_error(std::string_view message, NcclUse::Host& host) {
  Cursor c{message};
  const std::string_view file = c.until(":");
  int line = 0, result = 0;
  if (!file.ends_with(".cc") && !file.ends_with(".cu") && !file.ends_with(".h")) return;
  if (!c.literal(":") || !c.integer(line) || !c.literal(" -> ") || !c.integer(result)) return;
  constexpr int in_progress = 7;
  constexpr std::size_t longest = 120;
  if (result < 1 || result >= in_progress) return;
  if (host.result == 0) host.result = result;
  const std::string name(file.substr(0, 60));
  if (host.result == result && host.error_path.size() < longest && !contains(host.error_path, name))
    host.error_path += (host.error_path.empty() ? "" : ", ") + name;
}

// "NET/IB : GPU Direct RDMA Disabled for HCA 0 'mlx5_0'", "GPU Direct RDMA Disabled for GPU 3 / HCA 1 (distance 7 >
// 4)", "GPU Direct RDMA Enabled for GPU 0 / HCA 0 (distance 4 <= 5), read 1". NCCL also decides on pairs that it never
// uses.
void add_direct(std::string_view message, NcclUse::Host& host) {
  Cursor c{message};
  if (!c.after("GPU Direct RDMA ")) return;
  const bool enabled = c.literal("Enabled for ");
  if (!enabled && !c.literal("Disabled for ")) return;
  host.reads_directly = host.reads_directly || (enabled && contains(c.rest, ", read 1"));
  if (Cursor adapter = c; adapter.literal("HCA ") && adapter.after("'")) {
    const std::string name(adapter.until("'").substr(0, 60));
    if (host.direct_adapters.size() >= NcclUse::most_of_a_host && !host.direct_adapters.contains(name)) return;
    const auto [known, fresh] = host.direct_adapters.emplace(name, enabled);
    known->second = known->second && enabled;
  }
  if (!enabled && c.after("(distance ") && host.direct_reason.empty())
    host.direct_reason = std::string(c.rest.substr(0, std::min<std::size_t>(c.rest.find(')'), 60)));
}

// "with it on 1 of 2 connections"
std::string phrase(const NcclUse::Gpu::Ends& ends) {
  if (ends.direct == ends.all) return "with it";
  return ends.direct == 0 ? "without it" : fmt::format("with it on {} of {} connections", ends.direct, ends.all);
}

void take(std::string& into, const std::string& value) {
  if (!value.empty()) into = value;
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
  const std::string network = seen.fact("network");  // NCCL says it since 2.7
  const auto is_sockets = [](std::string_view name) { return name.starts_with("Socket"); };
  return network.empty() ? sockets : std::ranges::all_of(split_text(network, nccl::fact_separator), is_sockets);
}

bool NcclUse::Host::reaches_others() const {
  constexpr int both = 3;
  return std::ranges::any_of(ends, [](const auto& row) { return row.second != both; });
}

NcclUse::Gpu NcclUse::Host::together() const {
  Gpu all;
  for (const auto& [name, gpu] : gpus) {
    all.sends = {all.sends.all + gpu.sends.all, all.sends.direct + gpu.sends.direct};
    all.receives = {all.receives.all + gpu.receives.all, all.receives.direct + gpu.receives.direct};
    all.networks.insert(gpu.networks.begin(), gpu.networks.end());
    all.by_peer += gpu.by_peer;
    all.through_memory += gpu.through_memory;
  }
  return all;
}

std::string NcclUse::Gpu::direct_text(bool several) const {
  const std::string s = several ? "" : "s", out = phrase(sends), in = phrase(receives);
  if (sends.all == 0 && receives.all == 0) return "";
  if (receives.all == 0) return fmt::format("send{} {}", s, out);
  if (sends.all == 0) return fmt::format("receive{} {}", s, in);
  if (sends.direct + receives.direct == 0) return several ? "do neither" : "does neither";
  return out == in ? fmt::format("send{0} and receive{0} {1}", s, out)
                   : fmt::format("send{0} {1} and receive{0} {2}", s, out, in);
}

std::string NcclUse::Host::direct_text(bool several) const {
  std::set<std::string> sends, receives;
  std::vector<std::pair<std::string, std::vector<std::string>>> groups;
  for (const auto& [name, gpu] : gpus) {
    const std::string does = gpu.direct_text();
    if (does.empty()) continue;
    if (gpu.sends.all > 0) sends.insert(phrase(gpu.sends));
    if (gpu.receives.all > 0) receives.insert(phrase(gpu.receives));
    auto group = std::ranges::find(groups, does, [](const auto& row) { return row.first; });
    if (group == groups.end()) group = groups.insert(groups.end(), {does, {}});
    group->second.push_back(name);
  }
  // In a ring one GPU may send to other nodes, and another receive: they do not differ.
  if (sends.size() < 2 && receives.size() < 2) return together().direct_text(several);
  std::vector<std::string> parts;
  for (const auto& [does, names] : groups)
    parts.push_back(some_of(names) + " " + gpus.at(names.front()).direct_text(names.size() > 1));
  return join(parts, ", ");
}

std::size_t NcclUse::Host::devices() const {
  const std::string listed = seen.fact("network_devices");  // until 2.6 sockets, too, beside "mlx5_0:1/IB"
  const std::vector<std::string_view> words = words_of(listed);
  const auto ports = std::ranges::count_if(words, [](std::string_view word) { return contains(word, ":"); });
  if (ports > 0) return static_cast<std::size_t>(ports);
  return listed.starts_with("none") ? 0 : words.size();
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
    origin.host = word.substr(0, std::min<std::size_t>(process, 255));
    origin.process = word.substr(process + 1, std::min<std::size_t>(thread - process - 1, 20));
    Cursor c{prefix.substr(static_cast<std::size_t>(word.data() + word.size() - prefix.data()))};
    c.skip_blanks();
    if (c.literal("[") && c.rest.find(']') < 10) origin.gpu = c.until("]");
    origin.rank = fmt::format("{}:{} [{}]", origin.host, origin.process, origin.gpu);
    origin.place = c.rest.substr(0, 120);
  }
  return origin;
}

std::size_t NcclUseReader::host_at(const std::string& name) {
  const auto found = places_.find(name);
  if (found != places_.end()) return found->second;
  if (use_.hosts.size() >= most_names_of_hosts) {
    use_.cut = true;
    return 0;  // the one without a name
  }
  use_.hosts.push_back({.name = name});
  readers_.emplace_back(bytes_of_a_host);
  places_.emplace(name, use_.hosts.size() - 1);
  return use_.hosts.size() - 1;
}

bool NcclUseReader::line(const Line& line, const std::string& file) {
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
  std::string_view message = marked.substr(info.size());
  for (const std::string_view marker : {" NCCL INFO ", " NCCL WARN "})  // ranks that wrote into each other's line
    message = message.substr(0, message.find(marker));
  if (warns) {
    warning(message, origin, line, file);
    return !origin.host.empty();
  }
  communicator(message, origin);
  connection(message, origin);
  neighbours(message, origin);
  process(message, origin);
  add_error(message, use_.hosts[host]);
  add_direct(message, use_.hosts[host]);
  return !origin.host.empty();
}

void NcclUseReader::process(std::string_view message, const Origin& origin) {
  static constexpr std::array<std::string_view, 3> beginnings{"Using network ", "NET/", "NCCL version "};
  std::vector<NcclUse::Process>& all = use_.hosts[host_at(origin.host)].processes;
  if (origin.process.empty() || !starts_with_any(message, beginnings)) return;
  auto own = std::ranges::find_if(
      all, [&](const auto& process) { return process.id == origin.process && process.gpu == origin.gpu; });
  if (own == all.end()) {
    if (all.size() >= NcclUse::most_of_a_host) return;
    own = all.insert(all.end(), {.id = origin.process, .gpu = origin.gpu});
  }
  const nccl::Observed seen = nccl::parse_log(fmt::format("NCCL INFO {}", message));
  const std::string devices = seen.fact("network_devices");
  if (!devices.starts_with("none")) take(own->devices, devices);
  take(own->network, seen.fact("network"));
  take(own->version, seen.fact("version"));
}

// "ncclCommInitRankConfig comm 0x5500 rank 0 nranks 4 cudaDev 0 nvmlDev 0 busId 1b000 commId 0xabc - Init START"; since
// 2.20 "comm 0x5500 rank 0 nRanks 4 nNodes 2 localRanks 2 localRank 0 MNNVL 0".
void NcclUseReader::communicator(std::string_view message, const Origin& origin) {
  Cursor c{message};
  std::int64_t rank = 0, ranks = 0;
  if (!c.after("comm 0x") || !c.after(" rank ") || !c.integer(rank)) return;
  const bool described = c.literal(" nRanks ");
  if (!described && !c.literal(" nranks ")) return;
  if (!c.integer(ranks) || ranks < 1 || ranks > most_ranks || rank < 0 || rank >= ranks) return;
  if (communicator_of_.size() >= most_processes && !communicator_of_.contains(origin.rank)) return;
  std::string& current = communicator_of_[origin.rank];
  const bool completes = message.ends_with("Init COMPLETE");
  if (!completes) take_connections(origin.rank);  // those of the one before
  Cursor named = c;
  if (named.after(" commId ")) {
    current = std::string(named.word().substr(0, 40));
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
    own.complete.insert(rank);
    take_connections(origin.rank);
  }
}

void NcclUseReader::warning(std::string_view message, const Origin& origin, const Line& line, const std::string& file) {
  NcclUse::Warning warning;
  warning.kind = nccl_warning_kind(fmt::format("{} {}", origin.place, message));
  warning.host = origin.host;
  warning.peer = peer_in(message);
  warning.text = std::string(message.substr(0, 240));
  warning.time = origin.time;
  warning.file = file;
  warning.line = line.number;
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

NcclUse NcclUseReader::finish() {
  for (std::size_t i = 0; i < readers_.size(); ++i) use_.hosts[i].seen = readers_[i].finish();
  // Times have one format, which sorts as text; a warning without one stays where it was read.
  const bool timed = std::ranges::none_of(use_.warnings, [](const auto& w) { return w.time.empty(); });
  if (timed) std::ranges::stable_sort(use_.warnings, {}, &NcclUse::Warning::time);
  for (const auto& [rank, communicator] : communicator_of_) take_connections(rank);
  for (auto& [id, communicator] : use_.communicators) {
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
