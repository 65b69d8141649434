// InfiniBand and RoCE.
#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <utility>

#include "base/error.h"
#include "base/text.h"
#include "doctor/check.h"
#include "machine/cpus.h"
#include "machine/tree.h"
#include "nccl/values.h"

namespace harness::doctor {
namespace {

// Whether NCCL_IB_HCA asks for the port; where it is not set, whether the port is active on most nodes that have it.
bool is_wanted(const Node& node, const Cluster& cluster, const Port& port) {
  const std::string chosen = setting_of(node, "NCCL_IB_HCA");
  if (!chosen.empty()) return nccl::DeviceList(chosen).allows(port.name());
  const auto at = cluster.ports.find(port.name());
  return at != cluster.ports.end() && 2 * at->second.active > at->second.nodes;
}

// A card may have several ports, as functions of one device on the bus or of one device for RDMA.
std::string card_of(const Facts& facts, const Port& port) {
  const std::vector<std::string> path = pci_path(facts, "hca/" + port.device);
  return path.empty() ? port.device : path.back().substr(0, path.back().rfind('.'));
}

// Cards of one kind, by their board: whether any port of each is active.
using EqualCards = std::map<std::string, bool>;

std::map<std::string, EqualCards> equal_cards(const Facts& facts) {
  std::map<std::string, EqualCards> kinds;
  for (const Port& port : real_ports(facts)) {
    bool& active = kinds[facts.text("hca/" + port.device + "/board")][card_of(facts, port)];
    active = active || is_active(facts, port);
  }
  return kinds;
}

std::size_t active_among(const EqualCards& cards) {
  return static_cast<std::size_t>(std::ranges::count_if(cards, [](const auto& card) { return card.second; }));
}

// A card without an active port, where equal ones have some, has lost its cable, unless it never had one: the
// GPUs have a card each without it, other nodes do not use it either, or NCCL_IB_HCA does not ask for it. Of fewer
// cards than GPUs, half may be spare.
bool is_lost(const Node& node, const Cluster& cluster, const Port& port, const EqualCards& cards) {
  const std::size_t active = active_among(cards), gpus = node.facts.under("gpu").size();
  if (cards.at(card_of(node.facts, port)) || active == 0) return false;
  const bool one_for_each_gpu = gpus > 0 && cards.size() >= gpus;
  if (one_for_each_gpu ? active >= gpus : 2 * active <= cards.size()) return false;
  const auto at = cluster.ports.find(port.name());
  const bool nobody_uses_it = at != cluster.ports.end() && at->second.nodes > 1 && at->second.active == 0;
  return !nobody_uses_it && setting_of(node, "NCCL_IB_HCA").empty();
}

// Whether a node was built for a fabric: several GPUs, and a card of one kind for each. Others may have cards that
// nobody has connected.
bool has_card_for_each_gpu(const Node& node, const std::map<std::string, EqualCards>& kinds) {
  const std::size_t gpus = node.facts.under("gpu").size();
  return gpus > 1 && std::ranges::any_of(kinds, [&](const auto& kind) { return kind.second.size() >= gpus; });
}

std::optional<int> gid_index(const Node& node) {
  const auto index = number_in<int>(setting_of(node, "NCCL_IB_GID_INDEX"));
  return index && *index >= 0 ? index : std::nullopt;
}

}  // namespace

void look::ib_state(const Node& node, const Cluster& cluster, Findings& out) {
  if (no_ports(node, out)) return;
  const std::map<std::string, EqualCards> kinds = equal_cards(node.facts);
  const auto active = active_ports(node.facts).size();
  const auto is_known = [&](const Port& port) { return tells_state(node.facts, port); };
  const bool all_are_known = std::ranges::all_of(real_ports(node.facts), is_known);
  const bool lost_fabric =
      active == 0 && all_are_known && has_card_for_each_gpu(node, kinds) && setting_of(node, "NCCL_IB_HCA").empty();
  std::vector<std::string> spare;
  for (const Port& port : real_ports(node.facts)) {
    const machine::Reading& reading = node.facts[port.key + "state"];
    if (!is_known(port)) {
      out.unknown("the state of " + port.name(), why_silent(reading));
      continue;
    }
    if (is_active(node.facts, port)) continue;
    const std::string cable = node.facts.text(port.key + "phys_state");
    const bool no_manager = reading.text == "INIT";
    const std::string evidence =
        fmt::format("port {} is {} ({})", port.name(), reading.text, cable.empty() ? "?" : cable);
    const std::string remedy = no_manager ? "its cable is up: start the subnet manager, or look why it ignores the port"
                                          : "look at its cable, its switch port and `ibstat`";
    if (is_wanted(node, cluster, port) || (lost_fabric && no_manager)) {
      out.fail(evidence, remedy);
    } else if (const EqualCards& cards = kinds.at(node.facts.text("hca/" + port.device + "/board"));
               is_lost(node, cluster, port, cards)) {
      out.warn(fmt::format("{}: {} of {} equal adapters are active", evidence, active_among(cards), cards.size()),
               remedy);
    } else if (no_manager) {
      out.warn(evidence, remedy);
    } else {
      spare.push_back(port.name());
    }
  }
  if (active == 0 && !spare.empty()) {
    out.add(lost_fabric ? Verdict::fail : Verdict::warn,
            fmt::format("no port of the RDMA adapters is {}: NCCL uses sockets; not active: {}",
                        all_are_known ? "active" : "known to be active", join_first(spare, 4)),
            "look at cables, switches and `ibstat`");
  }
  if (!out.empty()) return;
  out.pass(plural(static_cast<std::int64_t>(active), "active port") +
           (spare.empty() ? "" : "; not active: " + join_first(spare, 4)));
}

// Ports of equal adapters must be equally fast. Another kind of adapter may be slower: it is for storage or management.
void look::ib_rate(const Node& node, const Cluster&, Findings& out) {
  if (no_active_ports(node, out)) return;
  const Facts& facts = node.facts;
  std::map<std::string, double> fastest;  // by kind of adapter
  double fastest_of_all = 0;
  for (const Port& port : active_ports(facts)) {
    const machine::Reading& reading = facts[port.key + "rate"];
    const double bits = machine::port_rate_in(reading.text);
    if (!reading.ok() || !(bits > 0)) {
      out.unknown("the rate of " + port.name(), why_silent(reading));
      continue;
    }
    double& best = fastest[facts.text("hca/" + port.device + "/board")];
    best = std::max(best, bits);
    fastest_of_all = std::max(fastest_of_all, bits);
  }
  for (const Port& port : active_ports(facts)) {
    const double bits = machine::port_rate_in(facts.text(port.key + "rate"));
    const double best = fastest[facts.text("hca/" + port.device + "/board")];
    constexpr double giga = 1e9;
    if (bits > 0 && bits < best) {
      out.fail(fmt::format("port {} has {}, others of its kind {:.0f} Gb/sec", port.name(),
                           facts.text(port.key + "rate"), best / giga),
               "reseat or replace its cable; look at the speed of its switch port");
    } else if (bits > 0 && bits < fastest_of_all && setting_of(node, "NCCL_IB_HCA").empty()) {
      out.info(
          fmt::format("port {} of another kind of adapter is slower: {}", port.name(), facts.text(port.key + "rate")),
          "if NCCL uses it, leave it out: NCCL_IB_HCA=^=" + port.device);
    }
  }
  if (out.empty()) out.pass(facts.text(active_ports(facts).front().key + "rate"));
}

void look::ib_layer(const Node& node, const Cluster&, Findings& out) {
  if (no_active_ports(node, out)) return;
  std::map<std::string, std::set<std::string>> layers;  // by kind of adapter
  for (const Port& port : active_ports(node.facts)) {
    const machine::Reading& reading = node.facts[port.key + "link_layer"];
    if (reading.text != "InfiniBand" && reading.text != "Ethernet") {
      out.unknown("the link layer of " + port.name(), why_silent(reading));
      continue;
    }
    layers[node.facts.text("hca/" + port.device + "/board")].insert(reading.text);
  }
  const bool mixed = std::ranges::any_of(layers, [](const auto& entry) { return entry.second.size() > 1; });
  if (!mixed) return out.conclude(!layers.empty(), layers.empty() ? "" : *layers.begin()->second.begin(), "");
  out.warn("adapters of one kind are set up for InfiniBand and for Ethernet", "mlxconfig -d DEVICE set LINK_TYPE_P1=1");
}

void look::ib_gid(const Node& node, const Cluster&, Findings& out) {
  if (no_active_ports(node, out)) return;
  bool any = false;
  for (const Port& port : active_ports(node.facts)) {
    if (!is_roce(node.facts, port)) continue;
    any = true;
    const machine::Reading& reading = node.facts[port.key + "roce_addresses"];
    if (!reading.ok()) {
      out.unknown("the addresses of " + port.name(), reading.why.empty() ? "no table of addresses" : reading.why);
      continue;
    }
    if (reading.text.empty()) {
      out.fail(fmt::format("port {} has no RoCE v2 address of IPv4", port.name()),
               "give its interface an IPv4 address, on every node");
      continue;
    }
    const auto wanted = gid_index(node);
    if (!wanted || (", " + reading.text + ",").find(fmt::format(", {},", *wanted)) != std::string::npos) continue;
    out.fail(fmt::format("NCCL_IB_GID_INDEX={} is no RoCE v2 address of IPv4 on {}, where these are: {}", *wanted,
                         port.name(), reading.text),
             "unset NCCL_IB_GID_INDEX: since 2.21 NCCL finds the address itself");
  }
  out.conclude(any, "RoCE v2 on every port", "no RoCE");
}

void look::ib_mtu(const Node& node, const Cluster&, Findings& out) {
  if (no_active_ports(node, out)) return;
  bool any = false;
  constexpr double enough = 4200;  // for RDMA packets of 4096 bytes and their headers
  // The kernel derives the port's active MTU from it (iboe_get_mtu() of its ib_addr.h): the largest power of two that
  // leaves 96 bytes for headers.
  const auto packet_bytes = [](double interface_bytes) {
    int bytes = 256;
    while (bytes < 4096 && 2 * bytes <= interface_bytes - 96) bytes *= 2;
    return bytes;
  };
  for (const Port& port : active_ports(node.facts)) {
    if (!is_roce(node.facts, port)) continue;
    any = true;
    const machine::Reading& reading = node.facts["hca/" + port.device + "/mtu"];
    const auto bytes = node.facts.number("hca/" + port.device + "/mtu");
    if (!bytes) {
      const bool none = reading.access == machine::Access::absent;
      out.unknown("the MTU of " + port.name(), none ? "it has no interface here" : why_silent(reading));
    } else if (*bytes < enough) {
      out.warn(fmt::format("the interface of {} has an MTU of {:.0f}: RDMA sends packets of {} bytes", port.name(),
                           *bytes, packet_bytes(*bytes)),
               "set 9000 on the interfaces and switches");
    }
  }
  out.conclude(any, "large", "no RoCE");
}

void look::ib_errors(const Node& node, const Cluster&, Findings& out) {
  if (no_active_ports(node, out)) return;
  std::set<std::pair<std::string, std::string>> told;  // boards, and what a port of theirs counts
  std::vector<std::string> silent;
  const auto board_of = [&](const Port& port) { return node.facts.peek("hca/" + port.device + "/board").text; };
  for (const Port& port : active_ports(node.facts)) {
    std::vector<std::string> counted;
    for (const std::string& name : node.facts.under(port.key + "counter")) {
      told.emplace(board_of(port), name);
      const auto times = node.facts.number(port.key + "counter/" + name);
      if (times > 0) counted.push_back(fmt::format("{} {:.0f}", name, *times));
    }
    if (counted.empty()) continue;
    out.info(fmt::format("port {} since it was set up: {}", port.name(), join_first(counted, 3)),
             "if they grow during a run, look at the cable");
  }
  for (const Port& port : active_ports(node.facts)) {
    const auto is_missing = [&](const auto& counter) {
      return counter.first == board_of(port) && !node.facts.has(port.key + "counter/" + counter.second);
    };
    if (std::ranges::any_of(told, is_missing)) silent.push_back(port.name());
  }
  if (!silent.empty()) out.unknown("the errors of " + join_first(silent, 3), "equal ones count more");
  out.conclude(!told.empty(), "no errors", "the ports count no errors here");
}

void look::ib_flaps(const Node& node, const Cluster&, Findings& out) {
  if (no_ports(node, out)) return;
  if (const auto& log = node.facts["log"]; !log.ok()) {
    return out.unknown("the kernel's log", log.why.empty() ? "there is none" : log.why, "run doctor once as root");
  }
  if (!node.facts.has("log/link_down")) return out.pass("none since the start");
  out.warn("links went down since the start: " + node.facts.text("log/link_down"),
           "look at the cables of these adapters");
}

}  // namespace harness::doctor
