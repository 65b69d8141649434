#include <algorithm>
#include <functional>
#include <map>

#include "base/text.h"
#include "base/units.h"
#include "evidence/nccl_use.h"

namespace harness::evidence {
namespace {

using Hosts = std::vector<const NcclUse::Host*>;

// "n01: sends and receives with it; n02 and n03: does neither"
std::string direct_text(const Hosts& hosts) {
  std::map<std::string, std::vector<std::string>> groups;
  for (const NcclUse::Host* host : hosts) {
    if (const std::string does = host->direct_text(); !does.empty()) groups[does].push_back(host->name);
  }
  std::vector<std::string> parts;
  for (const auto& [does, names] : groups) parts.push_back(fmt::format("{}: {}", some_of(names), does));
  std::ranges::sort(parts);
  return join(parts, "; ");
}

// "P2P/CUMEM/read 4, NET/IB 2 (senders)", without adapter numbers, which do not affect the kind.
std::string transports_text(const NcclUse& use) {
  std::map<std::string, std::int64_t> counts;
  for (const NcclUse::Host& host : use.hosts) {
    for (const auto& [name, value] : host.seen.facts) {
      constexpr std::string_view prefix = "transport ";
      if (!name.starts_with(prefix)) continue;
      std::vector<std::string> parts = split_text(std::string_view(name).substr(prefix.size()), "/");
      if (parts.front() == "NET") {
        std::erase_if(parts, [](const std::string& part) { return as_number(part).has_value(); });
      }
      counts[join(parts, "/")] += static_cast<std::int64_t>(as_number(value).value_or(0));
    }
  }
  std::vector<std::string> near, far;
  for (const auto& [kind, count] : counts)
    (kind.starts_with("NET") ? far : near).push_back(fmt::format("{} {}", kind, count));
  near.insert(near.end(), far.begin(), far.end());
  return near.empty() ? "" : join(near, ", ") + " (senders)";
}

// "AllReduce 64 MiB: Ring Simple, 3 times"
std::string algorithms_text(const NcclUse& use) {
  std::map<std::string, std::int64_t> counts;
  for (const NcclUse::Host& host : use.hosts) {
    for (const nccl::Call& call : host.seen.calls) {
      const std::string function = call.function.empty() ? "collective" : call.function;
      counts[fmt::format("{} {}: {} {}", function, print_bytes_exact(call.bytes), call.algorithm, call.protocol)] +=
          call.calls;
    }
  }
  std::vector<std::pair<std::int64_t, std::string>> rows;
  for (const auto& [text, count] : counts) rows.emplace_back(count, text);
  std::ranges::stable_sort(rows, std::greater<>(), [](const auto& row) { return row.first; });
  std::vector<std::string> parts;
  for (const auto& [count, text] : rows) parts.push_back(fmt::format("{}, {}", text, times(count)));
  return join_first(parts, 3);
}

// "1 -> 2 and 3 -> 0, adapter 0 each time"
std::string crossings_text(const NcclUse::Communicator& communicator) {
  std::vector<std::string> pairs;
  std::set<int> adapters;
  for (const auto& [pair, used] : communicator.ring_crossings()) {
    pairs.push_back(fmt::format("{} -> {}", pair.first, pair.second));
    adapters.insert(used.begin(), used.end());
  }
  if (pairs.empty()) return "";
  std::string text = some_of(pairs);
  return adapters.size() == 1 ? fmt::format("{}, adapter {} each time", text, *adapters.begin())
                              : fmt::format("{}, {} adapters", text, adapters.size());
}

std::string environment_text(const NcclUse& use) {
  std::map<std::string, std::string> values;
  for (const NcclUse::Host& host : use.hosts) {
    for (const auto& [name, value] : host.seen.facts) {
      if (name.starts_with("NCCL_")) values[name] = value;
    }
  }
  std::vector<std::string> parts;
  for (const auto& [name, value] : values) parts.push_back(fmt::format("{}={}", name, value));
  return join(parts, " ");
}

void add_facts(const NcclUse& use, const Hosts& hosts, Answer& out) {
  if (const std::string version = use.anywhere("version"); !version.empty())
    out.fact("nccl", version.substr(0, version.find('+')));
  const NcclUse::Communicator* largest = use.largest();
  if (largest != nullptr) out.fact("ranks", largest->ranks);
  if (!hosts.empty() && !use.lost_hosts) out.fact("hosts", std::ssize(hosts));
  if (largest != nullptr) out.fact("communicators", std::ssize(use.communicators));
  std::string network = use.anywhere("network");
  const bool sockets = network.starts_with("Socket");
  const std::size_t devices = hosts.empty() || sockets ? 0 : hosts.front()->devices();
  if (!network.empty() && devices > 0) network += ", " + plural(static_cast<std::int64_t>(devices), "adapter");
  out.fact_and_tell("network", "network", network);
  out.fact_and_tell("transports", "transports", transports_text(use));
  out.fact_and_tell("gpu_direct", "GPUDirect", direct_text(hosts));
  if (largest != nullptr) out.fact_and_tell("ring_crosses", "crossings", crossings_text(*largest));
  if (!sockets) out.fact_and_tell("adapters_used", "adapters", adapters_text(hosts));
  if (const auto channels = integer_after(use.anywhere("channels"), "")) out.fact("channels", *channels);
  out.fact_and_tell("algorithms", "algorithms", algorithms_text(use));
  out.fact_and_tell("env", "settings", environment_text(use));
}

}  // namespace

std::string adapters_text(const Hosts& hosts) {
  std::map<std::string, std::vector<std::string>> groups;
  for (const NcclUse::Host* host : hosts) {
    if (host->adapters.empty()) continue;
    const std::size_t there = host->devices();
    groups[there > 0 ? fmt::format("{} of {}", host->adapters.size(), there) : std::to_string(host->adapters.size())]
        .push_back(host->name);
  }
  if (groups.size() == 1) return groups.begin()->first + " on each host";
  std::vector<std::string> parts;
  for (const auto& [used, names] : groups) parts.push_back(fmt::format("{} on {}", used, some_of(names)));
  return join(parts, "; ");
}

Answer answer_of(const NcclUse& use) {
  Answer out = Answer::of("nccl", "nccl log");
  const Hosts hosts = use.named_hosts();
  add_facts(use, hosts, out);
  judge_nccl(use, out);
  const NcclUse::Communicator* largest = use.largest();
  const bool whole = largest == nullptr || largest->is_whole();  // else there may be other hosts
  const std::int64_t known = whole && !use.lost_hosts ? std::ssize(hosts) : 0,
                     nodes = std::max(known, largest == nullptr ? 0 : largest->nodes);
  if (out.headline.empty()) {
    const std::string network = use.anywhere("network");
    out.headline = fmt::format(
        "{}{}{}{}: {}", largest == nullptr ? "NCCL" : plural(largest->ranks, "rank"),
        nodes == 0 ? "" : " on " + plural(nodes, "host"),
        whole ? "" : fmt::format(", of which this log has {}", plural(std::ssize(largest->host_of), "rank")),
        network.empty() ? "" : ", network " + network,
        use.warnings.empty() ? "nothing is wrong that this log shows" : "its warnings name no cause that is known");
  }
  if (use.lost_hosts)
    out.notes.emplace_back("NCCL's lines have lost their host: all ranks count as those of one host, the log's");
  if (use.communicators_may_merge)
    out.notes.emplace_back(
        "the log names no commId (NCCL 2.16 and later do): communicators of equal size count as one");
  if (use.thinned)
    out.notes.emplace_back(
        "Ray left out lines that repeat others (RAY_DEDUP_LOGS=0 keeps them): ranks and connections are missing here");
  if (use.cut) out.notes.emplace_back("the log has more hosts or connections than are kept: counts are too low");
  const bool connected = std::ranges::any_of(hosts, [](const auto* host) { return !host->adapters.empty(); });
  if (!connected && hosts.size() > 1 && use.warnings.empty())
    out.notes.emplace_back("no connection over the network: since NCCL 2.22 they are made at the first collective");
  const std::int64_t ranks = largest == nullptr ? 0 : largest->ranks;
  if (ranks > 1 && nodes > 0 && ranks % nodes == 0) {
    say(out.next, "mpirun -np {} --map-by ppr:{}:node ./harness doctor", ranks, ranks / nodes);
  } else {
    out.next.emplace_back("./harness doctor --stages static     # on the node that is named");
  }
  return out;
}

}  // namespace harness::evidence
