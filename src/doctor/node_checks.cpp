// The node as a whole, its GPUs as the driver reports them, its RDMA ports, and the part of it that its ranks may use.
#include <algorithm>
#include <cstdint>
#include <map>
#include <set>
#include <utility>

#include "base/text.h"
#include "doctor/check.h"
#include "machine/cpus.h"

namespace harness::doctor {
namespace {

// The GPUs that any of the node's ranks may use. In a container, the driver may list its own GPUs only, beside a bus
// that shows all.
std::vector<std::string> gpus_of_job(const Node& node) {
  std::vector<std::string> gpus = node.facts.under("gpu");
  const bool are_given = is_container(node.facts) && node.facts.any("driver/gpu");
  std::erase_if(gpus, [&](const std::string& gpu) {
    if (are_given && !node.facts.has("driver/gpu/" + gpu)) return true;
    return !node.ranks.empty() &&
           std::ranges::all_of(node.ranks, [&](const Rank& rank) { return rank.facts.text("gpu/" + gpu) == "no"; });
  });
  return gpus;
}

// The CPUs that any of the node's ranks may use; empty if a rank does not report them.
machine::CpuSet cpus_of_job(const Node& node) {
  machine::CpuSet all;
  for (const Rank& rank : node.ranks) {
    const machine::CpuSet own = machine::cpus_in(rank.facts.text("bound/cpus"));
    if (own.none()) return {};
    all |= own | machine::cpus_in(rank.facts.text("bound/allowed"));
  }
  return all;
}

// Ports by the board of their adapter: their number, and how many are active.
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

// How bad it is that a port is inactive. A failure if NCCL_IB_HCA selects it, or if it is active on most nodes. A
// warning if it lacks only the subnet manager, or if most ports of equal adapters are active, unless there are enough
// of those for all GPUs or the port is inactive on all nodes. Else the port is spare.
Verdict missed(const Node& node, const Cluster& cluster, const Port& port, const Cluster::PortUse& equals) {
  if (!may_take(node, port)) return Verdict::pass;
  if (!setting_of(node, "NCCL_IB_HCA").empty()) return Verdict::fail;
  const auto at = cluster.ports.find(port.name());
  if (at != cluster.ports.end() && most_are_active(at->second)) return Verdict::fail;
  if (node.facts.text(port.key + "state") == "INIT") return Verdict::warn;
  const std::size_t gpus = node.facts.under("gpu").size();
  const bool one_for_each_gpu = gpus > 0 && equals.active >= gpus;
  const bool nobody_uses_it = at != cluster.ports.end() && at->second.nodes > 1 && at->second.active == 0;
  return most_are_active(equals) && !one_for_each_gpu && !nobody_uses_it ? Verdict::warn : Verdict::pass;
}

// Whether their traffic need not go through the processor.
bool share_bridge(const Facts& facts, const std::string& gpu, const std::string& hca) {
  const std::vector<std::string> a = pci_path(facts, "gpu/" + gpu), b = pci_path(facts, "hca/" + hca);
  return !a.empty() && !b.empty() && a.front() == b.front();
}

}  // namespace

// As ncclTopoGetLocal() of NCCL's src/graph/topo.cc chooses: the fastest ports, and of these the nearest. A port that
// is slower than its equals has a fault of its own: see ib.rate.
bool is_spare(const Node& node, const Port& port) {
  const Facts& facts = node.facts;
  const std::vector<std::string> gpus = facts.under("gpu");
  const auto board = [&](const Port& one) { return facts.text("hca/" + one.device + "/board"); };
  const auto rate = [&](const Port& one) { return number_of(facts.text(one.key + "rate")); };
  const auto is_near = [&](const Port& one) {
    return std::ranges::any_of(gpus, [&](const auto& gpu) { return share_bridge(facts, gpu, one.device); });
  };
  std::set<std::string> served;  // GPUs with an equally fast port nearby
  for (const Port& other : active_ports(facts)) {
    if (!may_take(node, other) || !rate(port)) continue;
    if (rate(other) > rate(port) && board(other) != board(port)) return true;
    for (const std::string& gpu : gpus)
      if (rate(other) == rate(port) && share_bridge(facts, gpu, other.device)) served.insert(gpu);
  }
  return !gpus.empty() && served.size() == gpus.size() && !is_near(port);
}

void look::node_answers(const Node& node, const Cluster&, Findings& out) {
  if (node.facts.has("silent")) {
    return out.fail(node.facts.text("silent") + " gave no answer: nothing is known of what it would have told",
                    "see whether its process still runs, and what the kernel's log of its node says");
  }
  if (told_nothing(node.facts)) {
    return out.unknown("the node", why_nothing(node.facts),
                       "a node's files are its /proc and /sys: see that they are where doctor looks");
  }
  const std::string stage = node.facts.text("unfinished");
  if (stage.empty()) return out.pass("all was read in time");
  out.warn("not everything was told in time: " + stage,
           "a driver that hangs also hangs whatever uses it; look at the kernel's log");
}

void look::gpu_count(const Node& node, const Cluster&, Findings& out) {
  const Facts& facts = node.facts;
  const std::vector<std::string> on_bus = facts.under("gpu"), by_driver = facts.under("driver/gpu");
  for (const char* list : {"driver/gpus", "pci"}) {
    const machine::Reading& reading = facts[list];
    if (reading.unreadable()) return out.unknown("the list of GPUs", reading.why);
  }
  if (on_bus.empty() && by_driver.empty()) return out.skip("no NVIDIA GPU");
  std::vector<std::string> missing = on_bus;
  std::erase_if(missing, [&](const std::string& gpu) {
    return std::ranges::binary_search(by_driver, gpu) || facts.text("gpu/" + gpu + "/driver") == "vfio-pci";
  });
  const auto most = static_cast<std::int64_t>(std::max(on_bus.size(), by_driver.size()));
  if (missing.empty()) return out.pass(plural(most, "GPU"));
  const std::string evidence = fmt::format("the bus has {}, NVIDIA's driver {}: not {}",
                                           plural(std::ssize(on_bus), "GPU"), by_driver.size(), join_first(missing, 3));
  if (is_container(facts)) return out.info(evidence + "; a container may have been given fewer");
  out.fail(evidence, by_driver.empty() ? "load NVIDIA's driver: `modprobe nvidia`, and see gpu.driver"
                                       : "look for Xid 79 in the kernel's log; reset or restart, then replace the GPU");
}

void look::gpu_nvml(const Node& node, const Cluster&, Findings& out) {
  const Facts& facts = node.facts;
  if (!has_gpus(facts)) return out.skip("no NVIDIA GPU");
  const machine::Reading& nvml = facts["nvml"];
  if (nvml.why.empty() && !nvml.ok()) return out.unknown("the GPUs' state", "NVML tells of the running machine only");
  if (!nvml.ok()) return out.unknown("the GPUs' state", nvml.why, "does `nvidia-smi` work on this node?");
  if (!facts.any("nvml")) return out.unknown("the GPUs' state", "NVML lists no GPU");
  std::vector<std::string> lost = facts.under("gpu");
  std::erase_if(lost, [&](const std::string& gpu) {
    const auto may_use = [&](const Rank& rank) { return rank.facts.text("gpu/" + gpu) == "yes"; };
    const bool is_listed = facts.any("nvml/" + gpu), is_named = !facts.text("nvml/" + gpu + "/name").empty();
    return is_named || (!is_listed && std::ranges::none_of(node.ranks, may_use));
  });
  if (lost.empty()) return out.pass(plural(std::ssize(facts.under("nvml")), "GPU"));
  out.unknown("the state of GPU " + join_first(lost, 3), "NVML does not tell it, though the job may use it",
              "look for Xid 79 in the kernel's log");
}

void look::rank_gpus(const Node& node, const Cluster&, Findings& out) {
  const std::size_t on_node = count_gpus(node.facts);
  if (on_node == 0) return out.skip("no NVIDIA GPU");
  const bool on_bus = node.facts.any("gpu");
  const auto gpus = static_cast<std::int64_t>(on_bus ? gpus_of_job(node).size() : on_node);
  const auto ranks = std::ssize(node.ranks);
  const std::string both = fmt::format("{} and {}{}", plural(ranks, "rank"), plural(gpus, "GPU"),
                                       std::cmp_less(gpus, on_node) ? " that the job may use" : "");
  if (gpus == 0) return out.warn(both, "ask the scheduler for GPUs (srun --gpus-per-node), or start no rank here");
  if (ranks < gpus)
    return out.info(fmt::format("{}: a rank puts one GPU under load", both),
                    fmt::format("start a rank for each GPU: mpirun --map-by ppr:{}:node", gpus));
  if (ranks > gpus) return out.fail(both, fmt::format("start {} on this node, or repair it", plural(gpus, "rank")));
  out.pass(both);
}

// Sweeps bind their workers to all CPUs that the job may use, so only CPUs that no rank may use matter to them.
void look::rank_near_gpu(const Node& node, const Cluster&, Findings& out) {
  if (!node.facts.any("gpu")) return out.skip("no NVIDIA GPU in /sys");
  const machine::CpuSet allowed = cpus_of_job(node);
  if (allowed.none()) return out.unknown("the CPUs that the job may use", "a rank does not tell them");
  std::vector<std::string> out_of_reach;
  for (const std::string& gpu : gpus_of_job(node)) {
    const machine::Reading& near = node.facts["gpu/" + gpu + "/cpus"];
    const machine::CpuSet cpus = machine::cpus_in(near.text);
    if (cpus.none()) return out.unknown("the CPUs near GPU " + gpu, why_silent(near));
    if ((cpus & allowed).none()) out_of_reach.push_back(gpu);
  }
  if (out_of_reach.empty()) return out.pass("near");
  out.warn(fmt::format("the job may use none of the CPUs near {}: {}", plural(std::ssize(out_of_reach), "GPU"),
                       join_first(out_of_reach, 3)),
           "give the job the CPUs of all NUMA nodes that its GPUs are near (--cpuset-cpus, srun --cpus-per-task)");
}

// A quota of all CPUs of the ranks limits nothing; Kubernetes sets such a quota on the pod of a whole node.
void look::cpu_quota(const Node& node, const Cluster&, Findings& out) {
  const machine::Reading& quota = node.facts["cpu/quota"];
  if (quota.text == "none") return out.pass("none");
  if (quota.access == machine::Access::absent) return out.skip("the kernel has no control groups");
  machine::CpuSet usable = cpus_of_job(node);
  if (usable.none()) usable = machine::cpus_in(node.facts.text("cpu/online"));
  const auto allowed = number_of(quota.text);
  const auto cpus = static_cast<double>(usable.count());
  if (!allowed || usable.none())
    return out.unknown("the quota of CPU time",
                       usable.none() ? "nothing tells the CPUs of the job" : why_silent(quota));
  if (*allowed >= cpus) return out.pass(fmt::format("{:.2f} CPUs, and the job may run on {:.0f}", *allowed, cpus));
  out.warn(fmt::format("a control group allows {:.2f} CPUs of the {:.0f} that the job may run on; beyond that every "
                       "thread is stopped for a while",
                       *allowed, cpus),
           "start the container without a CPU limit, or reserve whole CPUs");
}

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
                                 : "look at its cable, its switch port, `ibstat` and, of Ethernet, `ip link`");
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
  const std::vector<std::string> gpus = gpus_of_job(node);
  std::set<std::string> adapters;
  for (const Port& port : active_ports(facts)) {
    if (may_take(node, port)) adapters.insert(port.device);
  }
  if (gpus.empty() || adapters.empty()) return out.skip("no pairs of a GPU and an active adapter");
  if (is_grace(facts)) return out.skip("Grace's adapters are not below the GPUs' switches");
  if (is_virtual(facts)) return out.skip("a virtual machine hides the switches; NCCL_TOPO_FILE may tell NCCL of them");
  std::vector<std::string> keys, far;
  for (const std::string& hca : adapters) keys.push_back("hca/" + hca);
  for (const std::string& gpu : gpus) keys.push_back("gpu/" + gpu);
  for (const std::string& key : keys) {
    if (pci_path(facts, key).empty()) return out.unknown("the place of " + key, "/sys does not tell");
  }
  for (const std::string& gpu : gpus) {
    const auto is_near = [&](const std::string& hca) { return share_bridge(facts, gpu, hca); };
    if (std::ranges::none_of(adapters, is_near)) far.push_back(gpu);
  }
  if (far.empty()) return out.pass("one below the same bridge as each GPU");
  out.add(adapters.size() >= gpus.size() ? Verdict::warn : Verdict::info,
          fmt::format("no active adapter that NCCL can take shares a PCIe bridge with {} ({}): NCCL leaves GPUDirect "
                      "RDMA off there",
                      plural(std::ssize(far), "GPU"), join_first(far, 3)),
          "is its adapter's port down (ib.state), or not in NCCL_IB_HCA? if there is no other slot, measure "
          "NCCL_NET_GDR_LEVEL=PHB and SYS");
}

}  // namespace harness::doctor
