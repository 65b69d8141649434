// The stage nccl: one all-reduce over all ranks, judged by NCCL's log, check by check.
#include <algorithm>
#include <array>
#include <iterator>
#include <set>

#include "base/text.h"
#include "base/units.h"
#include "doctor/stage.h"
#include "nccl/topology.h"

namespace harness::doctor {
namespace {

using Words = std::set<std::string>;

// The combined logs of a node's ranks.
struct NodeLog {
  const Node& node;
  bool several_nodes = false;  // whether the job has others
  std::vector<const RankLog*> logs = {};
  std::vector<std::string> devices = {};  // in NCCL's numbering
  std::set<std::size_t> used = {};        // indices of devices with connections that leave the node
  bool through_host = false;              // ranks of the node communicate through host memory
  bool over_nvlink = false;               // to other nodes in the same NVLink domain

  // All values of a fact (nccl/log.h) in the logs.
  Words values(std::string_view fact) const {
    Words all;
    for (const RankLog* log : logs) {
      for (const std::string& value : split_text(log->seen.fact(fact), nccl::fact_separator)) {
        if (!value.empty()) all.insert(value);
      }
    }
    return all;
  }
  std::size_t gpus() const { return std::max(node.facts.under("gpu").size(), node.facts.under("nvml").size()); }
  bool communicates() const { return !used.empty(); }
  bool on_sockets() const { return values("network").contains("Socket"); }
};

constexpr const char* nccl_check = "stage.nccl";
constexpr double nccl_limit_s = 30;
// Large enough for the algorithm of a training step, whose connections NCCL makes on first use.
constexpr std::int64_t message_bytes = 64 << 20;
constexpr int max_logs = 512;  // each may be a MiB, and rank 0 holds them all

std::string text_of(const Words& words) {
  return join(std::vector<std::string>(words.begin(), words.end()), ", ");
}

NodeLog log_of(const Node& node, const std::vector<RankLog>& all, bool several_nodes) {
  NodeLog out{node, several_nodes};
  for (const RankLog& log : all) {
    if (std::ranges::find(node.ranks, log.rank, &Rank::rank) == node.ranks.end()) continue;
    out.logs.push_back(&log);
    for (const auto& [name, value] : log.seen.facts) {
      const std::vector<std::string> parts = split_text(name, "/");  // "transport NET/IB/3/GDRDMA": device 3
      out.through_host = out.through_host || name.starts_with("transport SHM");
      out.over_nvlink = out.over_nvlink || name.starts_with("transport P2P/MNNVL");
      if (parts.size() < 3 || parts[0] != "transport NET") continue;
      if (const auto device = number_in<std::size_t>(parts[2])) out.used.insert(*device);
    }
    if (out.devices.empty()) out.devices = split_text(log.seen.fact("network_devices"), " ");
  }
  return out;
}

constexpr const char* nccl_page = "https://docs.nvidia.com/deeplearning/nccl/user-guide/docs/troubleshooting.html";

// The port in doctor's notation, from "mlx5_0:1/IB", or since NCCL 2.30 "mlx5_0:1:0:0/IB".
std::string port_of_device(const std::string& device) {
  const std::string whole = device.substr(0, device.find('/'));
  const std::size_t first = whole.find(':');
  return first == std::string::npos ? whole : whole.substr(0, whole.find(':', first + 1));
}

// The active RDMA ports that NCCL's built-in network can use.
std::vector<std::string> usable_ports(const Facts& node) {
  std::vector<std::string> names;
  for (const Port& port : active_ports(node)) names.push_back(port.name());
  return names;
}

void network_is_unknown(Findings& out) {
  out.unknown("the network that NCCL took", "its log does not name one");
}

void judge_network(const NodeLog& log, Findings& out) {
  const Words networks = log.values("network");
  if (networks.empty()) return network_is_unknown(out);
  const std::string names = text_of(networks), word = lower(names);
  const bool is_of_efa = word.find("libfabric") != std::string::npos || word.find("ofi") != std::string::npos;
  if (networks.size() > 1)
    return out.fail("the ranks of the node use different networks: " + names,
                    "give all ranks the same NCCL_NET, NCCL_IB_HCA and NCCL_NET_PLUGIN (mpirun -x)");
  if (has_efa(log.node.facts) && !is_of_efa)
    return out.fail(fmt::format("NCCL uses {}, not EFA: its plug-in is missing", names),
                    "install aws-ofi-nccl and put its folder into LD_LIBRARY_PATH; unset NCCL_NET and NCCL_NET_PLUGIN");
  if (!log.on_sockets()) return out.pass(names);
  const std::vector<std::string> ports = usable_ports(log.node.facts);
  if (ports.empty()) {
    if (!log.several_nodes) return out.pass("sockets, which one node does not need");
    return out.info("NCCL talks over sockets between nodes: there is no active port for RDMA");
  }
  out.add(
      log.several_nodes ? Verdict::fail : Verdict::warn,
      fmt::format("NCCL talks over sockets, though ports are active for RDMA: {}", join_first(ports, 4)),
      "look for NCCL_IB_DISABLE, NCCL_NET and NCCL_IB_HCA in the environment and in /etc/nccl.conf; in a container, "
      "for libibverbs and /dev/infiniband");
}

void judge_gpu_direct(const NodeLog& log, Findings& out) {
  if (has_geforce(log.node.facts)) return out.skip("GeForce has none");
  if (log.on_sockets()) return out.skip("sockets have none");
  const Words direct = log.values("gpu_direct");  // of both ends of connections
  if (direct.empty()) {
    if (!log.several_nodes) return out.skip("no connection leaves the node");
    if (log.over_nvlink) return out.skip("the nodes talk over NVLink");
    return out.unknown("GPUDirect RDMA", "NCCL's log has no connection over the network");
  }
  static const Words on{"enabled"}, off{"disabled"};
  if (direct == on) return out.pass("on every connection");
  const std::string remedy =
      "load nvidia-peermem or use the driver's open modules, which have dma-buf (gdr.module); look at "
      "NCCL_NET_GDR_LEVEL and at whether GPU and adapter share a switch (topo.nearest)";
  if (log.values("gpu_direct_send") == off && log.values("gpu_direct_receive") == on)
    return out.warn("GPUs receive by GPUDirect RDMA, but what they send goes through host memory",
                    "unset NCCL_NET_GDR_READ, or set it to 1; look at nccl.peers and gpu.nvlink (usual for GPUs before "
                    "Ampere without NVLink)");
  if (direct == off) {
    if (log.communicates()) return out.fail("no connection uses GPUDirect RDMA: all goes through host memory", remedy);
    return out.warn("NCCL says that GPUDirect RDMA is off", remedy);
  }
  out.warn("some connections use GPUDirect RDMA, others go through host memory", remedy);
}

// A storage network may have ports too, and NCCL takes the nearest ones, so expect one port per GPU.
void judge_rails(const NodeLog& log, Findings& out) {
  if (log.on_sockets()) return out.skip("sockets");
  if (!log.communicates()) return out.skip("no connection leaves the node");
  if (log.node.ranks.size() < log.gpus()) return out.skip("not every GPU has a rank");
  if (log.values("network_devices").size() > 1)
    return out.skip("the ranks number their adapters differently: each has a list of its own");
  const std::size_t listed = log.devices.size(), gpus = std::max<std::size_t>(1, log.gpus());
  const std::string used =
      fmt::format("connections use {} of {}", plural(std::ssize(log.used), "adapter"), text_of(log.values("network")));
  // Plug-ins do not list their devices as NCCL does, and NCCL numbers devices that it merges from several ports after
  // all others: then the numbers cannot be compared with the list.
  if (*log.used.rbegin() >= listed) return out.pass(used);
  std::vector<std::string> unseen = usable_ports(log.node.facts), idle;
  const std::size_t ports = unseen.size();
  for (std::size_t i = 0; i < listed; ++i) {
    const std::string port = port_of_device(log.devices[i]);
    std::erase(unseen, port);
    if (!log.used.contains(i)) idle.push_back(port);
  }
  if (listed < std::min(gpus, ports) && !unseen.empty())
    return out.warn(fmt::format("NCCL has {} of {} active ports; not {}", listed, ports, join_first(unseen, 4)),
                    "look at NCCL_IB_HCA: mlx5_1 also means mlx5_10, =mlx5_1 does not; NCCL leaves out what is of "
                    "another link layer");
  if (log.used.size() < std::min(gpus, listed))
    return out.warn(
        fmt::format("connections use {} of NCCL's {} adapters; not {}", log.used.size(), listed, join_first(idle, 4)),
        "look at topo.nearest: NCCL takes the adapters that are nearest to the GPUs; in a virtual machine "
        "it needs NCCL_TOPO_FILE to know them");
  out.pass(used);
}

void judge_interface(const NodeLog& log, Findings& out) {
  const Words interfaces = log.values("bootstrap_interface");
  if (interfaces.empty()) return out.unknown("the interface that NCCL starts over", "its log does not name one");
  const auto unwanted_of = [](const auto& names) {
    std::vector<std::string> unwanted;
    std::ranges::copy_if(names, std::back_inserter(unwanted), nccl::is_virtual_interface);
    return join(unwanted, ", ");
  };
  const std::string starts = unwanted_of(interfaces),
                    carries = log.on_sockets() ? unwanted_of(log.devices) : std::string();
  const std::string remedy =
      "set NCCL_SOCKET_IFNAME on all ranks alike to the interface between the nodes, or to ^docker,lo,virbr";
  if (!log.several_nodes) return out.pass(text_of(interfaces) + ", on one node");
  if (!carries.empty()) return out.fail("NCCL's data goes over " + carries, remedy);
  if (!starts.empty()) return out.warn("NCCL starts over " + starts, remedy);
  out.pass(text_of(interfaces));
}

// Whether a GPU has joined a fabric of NVLink switches.
bool joined_fabric(const Facts& node) {
  const std::vector<std::string> gpus = node.under("nvml");
  return std::ranges::any_of(
      gpus, [&](const std::string& gpu) { return node.text(fmt::format("nvml/{}/fabric_state", gpu)) == "3"; });
}

void judge_nvls(const NodeLog& log, Findings& out) {
  if (log.node.ranks.size() < 2) return out.skip("one rank on the node");
  const Words multicast = log.values("nvls");
  if (multicast.empty()) return out.skip("NCCL does not speak of it");
  if (multicast == Words{"available"}) return out.pass("available");
  const std::string remedy = "look at gpu.fabric: restart the fabric manager, in the driver's version, and the GPUs";
  if (multicast.size() > 1)
    return out.warn("some GPUs of the node can sum up in the switch (NVLS), others cannot", remedy);
  if (log.values("NCCL_NVLS_ENABLE") == Words{"0"}) return out.skip("NCCL_NVLS_ENABLE=0");
  if (joined_fabric(log.node.facts))
    return out.warn("the GPUs have joined an NVLink fabric, but NCCL finds no multicast there (NVLS)", remedy);
  out.skip("no NVLink switch that has it");
}

void judge_peers(const NodeLog& log, Findings& out) {
  if (log.node.ranks.size() < 2) return out.skip("one rank on the node");
  const std::vector<std::string> gpus = log.node.facts.under("nvml");
  const auto any_has = [&](const char* fact) {
    return std::ranges::any_of(gpus, [&](const std::string& gpu) {
      return log.node.facts.number(fmt::format("nvml/{}/{}", gpu, fact)).value_or(0) > 0;
    });
  };
  if (!log.through_host) return out.pass("no ranks of the node talk through host memory");
  if (!any_has("nvlinks_active"))
    return out.info("ranks of the node talk through host memory (SHM): the GPUs have no NVLink");
  // Bridges join pairs of cards, and NCCL uses no P2P between two CPUs. Switches join all GPUs; the driver reports
  // their fabric from Hopper on.
  const bool joins_all = any_has("fabric_state");
  out.add(joins_all ? Verdict::fail : Verdict::warn,
          "ranks of the node talk through host memory (SHM), though their GPUs have NVLink",
          std::string("unset NCCL_P2P_DISABLE and NCCL_P2P_LEVEL; give the containers of a node one IPC and PID "
                      "namespace") +
              (joins_all ? "" : " (usual between cards whose NVLink bridges join only some of them)"));
}

void judge_warnings(const NodeLog& log, Findings& out) {
  Words warnings;
  for (const RankLog* of_rank : log.logs) warnings.insert(of_rank->seen.warnings.begin(), of_rank->seen.warnings.end());
  for (const std::string& text : warnings)
    out.warn("NCCL warns: " + text, "the words are NCCL's own; its troubleshooting page and issues have most of them");
  out.conclude(true, "none", "");
}

void judge_mtu(const NodeLog& log, Findings& out) {
  if (log.values("network").empty()) return network_is_unknown(out);
  if (log.on_sockets()) return out.skip("NCCL talks over sockets");
  const Words mtus = log.values("ib_mtu");
  if (mtus.empty()) return out.skip("its log tells of no connection of NCCL's own network");
  if (mtus == Words{"4096"}) return out.pass("4096 bytes");
  out.warn(fmt::format("ports send packets of {} bytes; 4096 are possible", text_of(mtus)),
           "RoCE: an MTU of 9000 on the interfaces and on every switch between them; InfiniBand: the subnet manager's "
           "MTU of the partition");
}

struct NodeCheck {
  const char *id, *question, *reads;
  Verdict at_worst;
  void (*judge)(const NodeLog&, Findings&);
};
constexpr auto node_checks = std::to_array<NodeCheck>({
    {"nccl.network", "which network does NCCL take, and is it the best there is", "Using network …", Verdict::fail,
     judge_network},
    {"nccl.gpu_direct", "do adapters reach the GPUs' memory, on every connection",
     "Channel … [send], [receive] via NET/…/GDRDMA", Verdict::fail, judge_gpu_direct},
    {"nccl.rails", "does NCCL use an adapter for each GPU", "NET/IB : Using …, Channel … via NET/…", Verdict::warn,
     judge_rails},
    {"nccl.interface", "does NCCL keep off docker0, lo and the like", "Bootstrap: Using …, NET/Socket : Using …",
     Verdict::fail, judge_interface},
    {"nccl.peers", "do the GPUs of a node talk directly", "Channel … via SHM/…", Verdict::fail, judge_peers},
    {"nccl.nvls", "can the NVLink switches sum up", "NVLS multicast support is …", Verdict::warn, judge_nvls},
    {"nccl.mtu", "do the ports send large packets", "NET/IB: … mtu …", Verdict::warn, judge_mtu},
    {"nccl.warnings", "does NCCL warn of anything", "NCCL WARN", Verdict::warn, judge_warnings},
});

constexpr const char* version_check = "nccl.version";

}  // namespace

std::vector<StageFinding> run_nccl_stage(const Bench& bench) {
  if (!config::traits_of(bench.backend).uses_nccl) return {of_job(nccl_check, Verdict::skip, "no NVIDIA GPU")};
  if (const auto why = obstacle(bench, nccl_check)) return {*why};
  if (bench.job.size() < 2) return {of_job(nccl_check, Verdict::skip, "one rank talks to nobody")};
  const Limit limit(bench.job.clock(), nccl_limit_s);
  config::Settings settings;
  settings.workload = "collective";
  settings.message_bytes = message_bytes;
  settings.in_place = false;
  settings.repetitions = 1;
  const int logs = std::min(bench.job.size(), max_logs);
  const job::BlockRequest request =
      stage_block(bench, "nccl", settings, {{program::Axis::data, bench.job.size()}}, job::Observe{logs}, limit);
  const job::BlockOutcome outcome = bench.job.run_alone(request);
  if (!outcome.ok) {
    StageFinding failed = failed_block(bench, nccl_check, "an all-reduce over all ranks", outcome);
    // NCCL compares the versions itself, and aborts.
    if (outcome.reason.find("Mismatched NCCL version") != std::string::npos) failed.check = version_check;
    return {failed};
  }
  std::vector<RankLog> read;
  for (int rank = 0; rank < logs; ++rank) {
    const std::string& text = outcome.of<job::ObserveSamples>(static_cast<std::size_t>(rank)).nccl_log;
    if (!text.empty()) read.push_back({rank, nccl::parse_log(text)});
  }
  std::vector<StageFinding> said = judge_nccl(bench.nodes, read);
  said.push_back(of_job(nccl_check, Verdict::pass, fmt::format("took {}", show_seconds(limit.used_s()))));
  return said;
}

std::vector<StageFinding> judge_nccl(const std::vector<Node>& nodes, const std::vector<RankLog>& logs) {
  std::vector<NodeLog> all;
  all.reserve(nodes.size());
  for (const Node& node : nodes) all.push_back(log_of(node, logs, nodes.size() > 1));
  std::vector<StageFinding> said;
  for (const NodeCheck& check : node_checks) {
    for (const NodeLog& log : all) {
      Findings found;
      if (log.logs.empty()) {
        found.unknown("what NCCL did", "no rank of the node brought a log home");
      } else {
        check.judge(log, found);
      }
      for (const Finding& finding : found.list()) said.push_back({check.id, finding, log.node.host});
    }
  }
  Findings found;  // NCCL does not start if the ranks have different versions
  Words versions;
  for (const NodeLog& log : all) versions.merge(log.values("version"));
  if (versions.empty()) found.unknown("the version of NCCL", "its log does not name it");
  found.conclude(true, "NCCL " + text_of(versions), "");
  said.push_back({version_check, found.list().front(), ""});
  return said;
}

std::vector<About> nccl_checks() {
  std::vector<About> all;
  for (const NodeCheck& check : node_checks)
    all.push_back({check.id, check.question, check.reads, nccl_page, check.at_worst});
  all.push_back({version_check, "do all ranks load the same NCCL", "NCCL version …", nccl_page, Verdict::fail});
  return all;
}

}  // namespace harness::doctor
