#include <algorithm>
#include <functional>
#include <map>

#include "base/error.h"
#include "base/text.h"
#include "base/units.h"
#include "evidence/nccl_use.h"

namespace harness::evidence {
namespace {

using Hosts = std::vector<const NcclUse::Host*>;

// "n01 sends and receives with it; n02 does neither"
std::string direct_text(const Hosts& hosts) {
  std::vector<std::pair<std::string, std::vector<std::string>>> groups;
  for (const NcclUse::Host* host : hosts) {
    if (!host->on_adapters()) continue;
    const bool sends = host->sends_directly(), receives = host->receives_directly();
    std::string does = "does neither|do neither";
    if (sends && receives) does = "sends and receives with it|send and receive with it";
    if (sends && !receives) does = "sends with it and receives without|send with it and receive without";
    if (!sends && receives) does = "receives with it and sends without|receive with it and send without";
    auto group = std::ranges::find(groups, does, [](const auto& row) { return row.first; });
    if (group == groups.end()) group = groups.insert(groups.end(), {does, {}});
    group->second.push_back(host->name);
  }
  std::vector<std::string> parts;
  for (const auto& [does, names] : groups)
    parts.push_back(some_of(names) + " " + split_text(does, "|")[names.size() == 1 ? 0 : 1]);
  return join(parts, "; ");
}

// "P2P/CUMEM/read 4, NET/IB 2 (senders)": adapters' numbers say nothing about the kind.
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
  for (const auto& [pair, used] : communicator.crossings) {
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
  const auto fact = [&](const char* key, Value value, const char* label = nullptr) {
    if (const auto* text = std::get_if<std::string>(&value); text != nullptr && text->empty()) return;
    if (label != nullptr && std::holds_alternative<std::string>(value))
      out.evidence.emplace_back(label, std::get<std::string>(value));
    out.facts.emplace_back(key, std::move(value));
  };
  fact("kind", "nccl log");
  const std::string version = use.anywhere("version");
  fact("nccl", version.substr(0, version.find('+')));
  const NcclUse::Communicator* largest = use.largest();
  if (largest != nullptr) fact("ranks", largest->ranks);
  if (!hosts.empty()) fact("hosts", static_cast<std::int64_t>(hosts.size()));
  if (largest != nullptr) fact("communicators", static_cast<std::int64_t>(use.communicators.size()));
  const std::string network = use.anywhere("network");
  const std::size_t devices = hosts.empty() ? 0 : hosts.front()->devices();
  const bool counted = !network.empty() && devices > 0 && !network.starts_with("Socket");
  fact("network",
       counted ? fmt::format("{}, {}", network, plural(static_cast<std::int64_t>(devices), "adapter")) : network,
       "network");
  fact("transports", transports_text(use), "transports");
  if (counted) fact("gpu_direct", direct_text(hosts), "GPUDirect");
  if (largest != nullptr) fact("ring_crosses", crossings_text(*largest), "crossings");
  if (counted && std::ranges::any_of(hosts, [](const auto* host) { return !host->adapters.empty(); }))
    fact("adapters_used", adapters_text(hosts), "adapters");
  if (const auto channels = integer_after(use.anywhere("channels"), "")) fact("channels", *channels);
  fact("algorithms", algorithms_text(use), "algorithms");
  fact("env", environment_text(use), "settings");
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
  Answer out;
  out.object = "nccl";
  out.kind = "nccl log";
  const Hosts hosts = use.named_hosts();
  add_facts(use, hosts, out);
  judge_nccl(use, out);
  const NcclUse::Communicator* largest = use.largest();
  if (out.headline.empty()) {
    const std::string network = use.anywhere("network");
    out.headline = fmt::format("{}{}{}: nothing is wrong that this log shows",
                               largest == nullptr ? "NCCL" : plural(largest->ranks, "rank"),
                               hosts.empty() ? "" : " on " + plural(static_cast<std::int64_t>(hosts.size()), "host"),
                               network.empty() ? "" : ", network " + network);
  }
  if (use.communicators_may_merge)
    out.notes.emplace_back(
        "the log names no commId (NCCL 2.16 and later do): communicators of equal size count as one");
  if (use.cut) out.notes.emplace_back("the log has more hosts or connections than are kept: counts are too low");
  const bool connected = std::ranges::any_of(hosts, [](const auto* host) { return !host->adapters.empty(); });
  if (!connected && hosts.size() > 1 && use.warnings.empty())
    out.notes.emplace_back("no connection over the network: since NCCL 2.22 they are made at the first collective");
  const std::int64_t ranks = largest == nullptr ? 0 : largest->ranks;
  if (ranks > 1 && !hosts.empty() && ranks % static_cast<std::int64_t>(hosts.size()) == 0) {
    out.next.push_back(fmt::format("mpirun -np {} --map-by ppr:{}:node ./harness doctor", ranks,
                                   ranks / static_cast<std::int64_t>(hosts.size())));
  } else {
    out.next.emplace_back("./harness doctor --stages static     # on the node that is named");
  }
  return out;
}

}  // namespace harness::evidence
