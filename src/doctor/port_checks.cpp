// Ports for RDMA: which should be active, and which GPUs they are near.
#include <algorithm>
#include <map>
#include <set>

#include "base/error.h"
#include "base/text.h"
#include "doctor/check.h"
#include "nccl/values.h"

namespace harness::doctor {
namespace {

// Ports of adapters of one kind, by their board: how many there are, and how many of them are active.
std::map<std::string, Cluster::PortUse> ports_by_board(const Facts& facts) {
  std::map<std::string, Cluster::PortUse> uses;
  for (const Port& port : real_ports(facts)) {
    Cluster::PortUse& use = uses[facts.text("hca/" + port.device + "/board")];
    ++use.nodes;
    use.active += is_active(facts, port) ? 1 : 0;
  }
  return uses;
}

bool most_are_active(const Cluster::PortUse& use) {
  return 2 * use.active > use.nodes;
}

// How bad it is that a port is not active. A failure where NCCL_IB_HCA asks for it or it is active on most nodes; a
// warning where most ports of equal adapters are, unless each GPU has one or no other node has it active either, and
// where only the subnet manager is missing. Else it is spare.
Verdict missed(const Node& node, const Cluster& cluster, const Port& port, const Cluster::PortUse& equals) {
  const std::string chosen = setting_of(node, "NCCL_IB_HCA");
  if (!chosen.empty()) return nccl::DeviceList(chosen).allows(port.name()) ? Verdict::fail : Verdict::pass;
  const auto at = cluster.ports.find(port.name());
  if (at != cluster.ports.end() && most_are_active(at->second)) return Verdict::fail;
  if (node.facts.text(port.key + "state") == "INIT") return Verdict::warn;
  const std::size_t gpus = node.facts.under("gpu").size();
  const bool one_for_each_gpu = gpus > 0 && equals.active >= gpus;
  const bool nobody_uses_it = at != cluster.ports.end() && at->second.nodes > 1 && at->second.active == 0;
  return most_are_active(equals) && !one_for_each_gpu && !nobody_uses_it ? Verdict::warn : Verdict::pass;
}

// Whether a bridge leads to both devices; else they meet in the processor.
bool share_a_bridge(const Facts& node, const std::string& a, const std::string& b) {
  const std::vector<std::string> first = pci_path(node, a), second = pci_path(node, b);
  return !first.empty() && !second.empty() && first.front() == second.front();
}

}  // namespace

void look::ib_state(const Node& node, const Cluster& cluster, Findings& out) {
  if (no_ports(node, out)) return;
  const Facts& facts = node.facts;
  const std::map<std::string, Cluster::PortUse> by_board = ports_by_board(facts);
  std::vector<std::string> spare;
  bool all_are_known = true;
  for (const Port& port : real_ports(facts)) {
    const machine::Reading& state = facts[port.key + "state"];
    if (!tells_state(facts, port)) {
      all_are_known = false;
      out.unknown("the state of " + port.name(), why_silent(state));
      continue;
    }
    if (is_active(facts, port)) continue;
    const Cluster::PortUse& equals = by_board.at(facts.text("hca/" + port.device + "/board"));
    const Verdict verdict = missed(node, cluster, port, equals);
    if (verdict == Verdict::pass) {
      spare.push_back(port.name());
      continue;
    }
    const std::string cable = facts.text(port.key + "phys_state");
    out.add(verdict,
            fmt::format("port {} is {} ({}); {} of {} ports of equal adapters are active", port.name(), state.text,
                        cable.empty() ? "?" : cable, equals.active, equals.nodes),
            state.text == "INIT" ? "its cable is up: start the subnet manager, or look why it ignores the port"
                                 : "look at its cable, its switch port and `ibstat`");
  }
  const std::size_t active = active_ports(facts).size();
  if (active == 0 && !spare.empty()) {
    out.warn(fmt::format("no port of the RDMA adapters is {}: NCCL uses sockets; not active: {}",
                         all_are_known ? "active" : "known to be active", join_first(spare, 4)),
             "look at cables, switches and `ibstat`");
  }
  out.conclude(true,
               plural(static_cast<std::int64_t>(active), "active port") +
                   (spare.empty() ? "" : "; not active: " + join_first(spare, 4)),
               "");
}

void look::topo_nearest(const Node& node, const Cluster&, Findings& out) {
  const Facts& facts = node.facts;
  const std::vector<std::string> gpus = gpus_of(facts);
  std::set<std::string> adapters;
  for (const Port& port : active_ports(facts)) adapters.insert(port.device);
  if (gpus.empty() || adapters.empty()) return out.skip("no pairs of a GPU and an active adapter");
  if (is_arm(facts)) return out.skip("Grace's adapters are not below the GPUs' switches");
  if (is_virtual(facts)) return out.skip("a virtual machine hides the switches; NCCL_TOPO_FILE may tell NCCL of them");
  std::vector<std::string> keys, far;
  for (const std::string& hca : adapters) keys.push_back("hca/" + hca);
  for (const std::string& gpu : gpus) keys.push_back("gpu/" + gpu);
  for (const std::string& key : keys) {
    if (pci_path(facts, key).empty()) return out.unknown("the place of " + key, "/sys does not tell");
  }
  for (const std::string& gpu : gpus) {
    const auto is_near = [&](const std::string& hca) { return share_a_bridge(facts, "gpu/" + gpu, "hca/" + hca); };
    if (std::ranges::none_of(adapters, is_near)) far.push_back(gpu);
  }
  if (far.empty()) return out.pass("one below the same bridge as each GPU");
  out.add(adapters.size() >= gpus.size() ? Verdict::warn : Verdict::info,
          fmt::format("no active adapter shares a PCIe bridge with {} ({}): NCCL leaves GPUDirect RDMA off there",
                      plural(std::ssize(far), "GPU"), join_first(far, 3)),
          "is its adapter's port down (ib.state)? if there is no other slot, measure NCCL_NET_GDR_LEVEL=PHB and SYS");
}

}  // namespace harness::doctor
