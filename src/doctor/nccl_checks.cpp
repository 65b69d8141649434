// Judges NCCL's log of a node's ranks, check by check.
#include <algorithm>
#include <functional>
#include <map>

#include "base/error.h"
#include "base/text.h"
#include "doctor/stage.h"

namespace harness::doctor {
namespace {

constexpr const char* nccl_page = "https://docs.nvidia.com/deeplearning/nccl/user-guide/docs/troubleshooting.html";

// "mlx5_0:1/IB", "mlx5_0:1:0:0/IB" since 2.30: the port, as doctor names it.
std::string port_of_device(const std::string& device) {
  const std::string whole = device.substr(0, device.find('/'));
  const std::size_t first = whole.find(':');
  return first == std::string::npos ? whole : whole.substr(0, whole.find(':', first + 1));
}

// The active ports for RDMA that NCCL's own network can use.
std::vector<std::string> usable_ports(const Facts& node) {
  std::vector<std::string> names;
  for (const Port& port : active_ports(node)) names.push_back(port.name());
  return names;
}

// True, and said, where the log does not tell which network NCCL took.
bool no_network(const NodeLog& log, Findings& out) {
  if (log.networks.empty()) out.unknown("the network that NCCL took", "its log does not name one");
  return !out.empty();
}

void judge_network(const NodeLog& log, Findings& out) {
  if (no_network(log, out)) return;
  const std::string names = text_of(log.networks);
  if (log.networks.size() > 1)
    return out.fail("the ranks of the node use different networks: " + names,
                    "give all ranks the same NCCL_NET, NCCL_IB_HCA and NCCL_NET_PLUGIN (mpirun -x)");
  if (!log.on_sockets()) return out.pass(names);
  const std::vector<std::string> ports = usable_ports(log.node.facts);
  if (has_efa(log.node.facts)) return out.skip("nccl.plugin says it");
  if (ports.empty()) {
    if (!log.several_nodes) return out.pass("sockets, which one node does not need");
    return out.info("NCCL talks over sockets between nodes: there is no active port for RDMA");
  }
  constexpr std::size_t shown = 4;
  out.add(
      log.several_nodes ? Verdict::fail : Verdict::warn,
      fmt::format("NCCL talks over sockets, though {} active for RDMA: {}",
                  ports.size() == 1 ? "a port is" : fmt::format("{} ports are", ports.size()),
                  join_first(ports, shown)),
      "look for NCCL_IB_DISABLE, NCCL_NET and NCCL_IB_HCA in the environment and in /etc/nccl.conf; in a container, "
      "for libibverbs and /dev/infiniband");
}

void judge_plugin(const NodeLog& log, Findings& out) {
  if (!has_efa(log.node.facts)) return out.skip("no adapter that needs a plug-in");
  if (no_network(log, out)) return;
  const auto is_libfabric = [](const std::string& name) {
    return lower(name).find("libfabric") != std::string::npos || lower(name).find("ofi") != std::string::npos;
  };
  if (std::ranges::all_of(log.networks, is_libfabric)) return out.pass(text_of(log.networks));
  out.fail(fmt::format("NCCL uses {}, not EFA: its plug-in is missing", text_of(log.networks)),
           "install aws-ofi-nccl and put its folder into LD_LIBRARY_PATH; unset NCCL_NET and NCCL_NET_PLUGIN");
}

// Why NCCL does not let adapters read what GPUs send, as it decides in graph/paths.cc (ncclTopoCheckGdr): it was told
// so, or a GPU from before Ampere has no NVLink. "": it should let them.
std::string why_sends_are_not_direct(const NodeLog& log) {
  const Facts& facts = log.node.facts;
  if (setting_of(log.node, "NCCL_NET_GDR_READ") == "0" || values_of(log.logs, "NCCL_NET_GDR_READ").contains("0"))
    return "NCCL_NET_GDR_READ=0";
  if (setting_of(log.node, "NCCL_NET_GDR_READ") == "1") return "";
  const std::vector<std::string> gpus = gpus_of(facts);
  const auto is_such = [&](const std::string& gpu) {
    return is_older_than_ampere(facts, gpu) && facts.number("nvml/" + gpu + "/nvlinks_active").value_or(0) == 0;
  };
  if (!gpus.empty() && std::ranges::all_of(gpus, is_such)) return "usual for GPUs before Ampere without NVLink";
  return "";
}

void judge_gpu_direct(const NodeLog& log, Findings& out) {
  const std::vector<std::string> gpus = gpus_of(log.node.facts);
  if (!gpus.empty() && is_geforce(gpu_model(log.node.facts, gpus.front()))) return out.skip("GeForce has none");
  if (log.on_sockets()) return out.skip("sockets have none");
  if (log.direct.empty()) {
    if (!log.several_nodes) return out.skip("no connection leaves the node");
    if (log.over_nvlink) return out.skip("the nodes talk over NVLink");
    return out.unknown("GPUDirect RDMA", "NCCL's log has no connection over the network");
  }
  static const Words on{"enabled"}, off{"disabled"};
  if (log.direct == on) return out.pass("on every connection");
  if (const std::string usual = why_sends_are_not_direct(log); !usual.empty() && log.direct_sends == off) {
    if (log.direct_receives == on) return out.pass(fmt::format("on every connection that receives ({})", usual));
    if (log.direct_receives.empty())
      return out.unknown("GPUDirect RDMA",
                         "NCCL's log has no connection that receives, and sends do without: " + usual);
  }
  const std::string remedy =
      "load nvidia-peermem or use the driver's open modules, which have dma-buf (gdr.module); look at "
      "NCCL_NET_GDR_LEVEL and at whether GPU and adapter share a switch (topo.nearest)";
  if (log.direct_sends == off && log.direct_receives == on) {
    return out.warn("GPUs receive by GPUDirect RDMA, but what they send goes through host memory",
                    "unset NCCL_NET_GDR_READ, or set it to 1; look at nccl.peers and gpu.nvlink");
  }
  if (log.direct == off) {
    if (log.communicates()) return out.fail("no connection uses GPUDirect RDMA: all goes through host memory", remedy);
    return out.warn("NCCL says that GPUDirect RDMA is off", remedy);
  }
  out.warn("some connections use GPUDirect RDMA, others go through host memory", remedy);
}

// A storage network may have ports too, and NCCL takes the nearest: each GPU one is what to expect.
void judge_rails(const NodeLog& log, Findings& out) {
  if (log.on_sockets()) return out.skip("sockets");
  if (!log.communicates()) return out.skip("no connection leaves the node");
  if (log.node.ranks.size() < log.gpus()) return out.skip("not every GPU has a rank");
  // A plug-in does not list its devices as NCCL does, and NCCL numbers those that it made of several ports after all
  // others: then there is no more to hold them against.
  if (*log.used.rbegin() >= log.devices.size())
    return out.pass(
        fmt::format("connections use {} of {}", plural(std::ssize(log.used), "device"), text_of(log.networks)));
  std::vector<std::string> unseen, idle;
  const std::vector<std::string> ports = usable_ports(log.node.facts);
  for (const std::string& port : ports) {
    const auto is_it = [&](const std::string& device) { return port_of_device(device) == port; };
    if (std::ranges::none_of(log.devices, is_it)) unseen.push_back(port);
  }
  for (std::size_t i = 0; i < log.devices.size(); ++i) {
    if (!log.used.contains(i)) idle.push_back(port_of_device(log.devices[i]));
  }
  constexpr std::size_t shown = 4;
  const std::size_t gpus = std::max<std::size_t>(1, log.gpus());
  if (log.devices.size() < std::min(gpus, ports.size()) && !unseen.empty())
    return out.warn(fmt::format("NCCL has {} of {} active ports; not {}", log.devices.size(), ports.size(),
                                join_first(unseen, shown)),
                    "look at NCCL_IB_HCA: mlx5_1 also means mlx5_10, =mlx5_1 does not; NCCL leaves out what is of "
                    "another link layer");
  if (log.used.size() < std::min(gpus, log.devices.size()))
    return out.warn(fmt::format("connections use {} of NCCL's {} adapters; not {}", log.used.size(), log.devices.size(),
                                join_first(idle, shown)),
                    "look at topo.nearest: NCCL takes the adapters that are nearest to the GPUs; in a virtual machine "
                    "it needs NCCL_TOPO_FILE to know them");
  out.pass(fmt::format("connections use {} of NCCL's {} adapters", log.used.size(), log.devices.size()));
}

void judge_interface(const NodeLog& log, Findings& out) {
  if (log.interfaces.empty()) return out.unknown("the interface that NCCL starts over", "its log does not name one");
  Words unwanted, carrying;
  for (const std::string& name : log.interfaces) {
    if (nccl::is_virtual_interface(name)) unwanted.insert(name);
  }
  if (log.on_sockets()) {
    for (const std::string& name : log.devices) {
      if (nccl::is_virtual_interface(name)) carrying.insert(name);
    }
  }
  const std::string remedy =
      "set NCCL_SOCKET_IFNAME on all ranks alike to the interface between the nodes, or to ^docker,lo,virbr";
  if (!log.several_nodes) return out.pass(text_of(log.interfaces) + ", on one node");
  if (!carrying.empty()) return out.fail("NCCL's data goes over " + text_of(carrying), remedy);
  if (!unwanted.empty()) return out.warn("NCCL starts over " + text_of(unwanted), remedy);
  out.pass(text_of(log.interfaces));
}

// Whether a GPU has joined a fabric of NVLink switches.
bool joined_fabric(const Facts& node) {
  const std::vector<std::string> gpus = node.under("nvml");
  return std::ranges::any_of(
      gpus, [&](const std::string& gpu) { return node.text(fmt::format("nvml/{}/fabric_state", gpu)) == "3"; });
}

void judge_nvls(const NodeLog& log, Findings& out) {
  if (log.node.ranks.size() < 2) return out.skip("one rank on the node");
  if (log.nvls.empty()) return out.skip("NCCL does not speak of it");
  if (log.nvls == Words{"available"}) return out.pass("available");
  const std::string remedy =
      "look at gpu.fabric and gpu.fabric_manager: restart the fabric manager, in the driver's version, and the GPUs";
  if (log.nvls.size() > 1)
    return out.warn("some GPUs of the node can sum up in the switch (NVLS), others cannot", remedy);
  if (values_of(log.logs, "NCCL_NVLS_ENABLE") == Words{"0"}) return out.skip("NCCL_NVLS_ENABLE=0");
  if (joined_fabric(log.node.facts))
    return out.warn("the GPUs have joined an NVLink fabric, but NCCL finds no multicast there (NVLS)", remedy);
  out.skip("no NVLink switch that has it");
}

void judge_peers(const NodeLog& log, Findings& out) {
  if (log.node.ranks.size() < 2) return out.skip("one rank on the node");
  const std::vector<std::string> gpus = log.node.facts.under("nvml");
  const bool linked = std::ranges::any_of(gpus, [&](const std::string& gpu) {
    return log.node.facts.number(fmt::format("nvml/{}/nvlinks_active", gpu)).value_or(0) > 0;
  });
  if (!log.through_host) return out.pass("no ranks of the node talk through host memory");
  if (!linked) return out.info("ranks of the node talk through host memory (SHM): the GPUs have no NVLink");
  out.fail("ranks of the node talk through host memory (SHM), though their GPUs have NVLink",
           "unset NCCL_P2P_DISABLE and NCCL_P2P_LEVEL; give the containers of a node one IPC and PID namespace");
}

void judge_warnings(const NodeLog& log, Findings& out) {
  for (const std::string& text : log.warnings)
    out.warn("NCCL warns: " + text, "the words are NCCL's own; its troubleshooting page and issues have most of them");
  if (log.warnings.empty()) out.pass("none");
}

struct NodeCheck {
  About about;
  std::function<void(const NodeLog&, Findings&)> judge;
};

// NCCL asks CUDA for the attribute of each GPU, and its network whether it can.
void judge_dma_buf(const NodeLog& log, Findings& out) {
  if (no_network(log, out)) return;
  if (log.on_sockets()) return out.skip("NCCL talks over sockets");
  if (log.with_dma_buf == log.logs.size()) return out.pass("on every GPU");
  const std::string remedy = "the open kernel modules of the driver, a kernel from 5.12 on, no NCCL_DMABUF_ENABLE=0";
  if (log.with_dma_buf > 0) {
    return out.warn(fmt::format("NCCL finds dma-buf on {} of the GPUs of {}", log.with_dma_buf,
                                plural(std::ssize(log.logs), "rank")),
                    remedy);
  }
  out.info("NCCL finds no dma-buf: adapters reach the GPUs' memory by nvidia_peermem or not at all", remedy);
}

void judge_mtu(const NodeLog& log, Findings& out) {
  if (no_network(log, out)) return;
  if (log.on_sockets()) return out.skip("NCCL talks over sockets");
  if (log.mtus.empty()) return out.skip("its log tells of no connection of NCCL's own network");
  static const Words largest{"4096"};
  if (log.mtus == largest) return out.pass("4096 bytes");
  out.warn(fmt::format("ports send packets of {} bytes; 4096 are possible", text_of(log.mtus)),
           "RoCE: an MTU of 9000 on the interfaces and on every switch between them; InfiniBand: the subnet manager's "
           "MTU of the partition");
}

const std::vector<NodeCheck>& node_checks() {
  static const std::vector<NodeCheck> all{
      {{"nccl.network", "which network does NCCL take, and is it the best there is", "Using network …", Verdict::fail,
        nccl_page},
       judge_network},
      {{"nccl.plugin", "does NCCL use EFA, by its plug-in", "Using network …", Verdict::fail, nccl_page}, judge_plugin},
      {{"nccl.gpu_direct", "do adapters reach the GPUs' memory, on every connection",
        "Channel … [send], [receive] via NET/…/GDRDMA", Verdict::fail, nccl_page},
       judge_gpu_direct},
      {{"nccl.rails", "does NCCL use an adapter for each GPU", "NET/IB : Using …, Channel … via NET/…", Verdict::warn,
        nccl_page},
       judge_rails},
      {{"nccl.interface", "does NCCL keep off docker0, lo and the like", "Bootstrap: Using …, NET/Socket : Using …",
        Verdict::fail, nccl_page},
       judge_interface},
      {{"nccl.peers", "do the GPUs of a node talk directly", "Channel … via SHM/…", Verdict::fail, nccl_page},
       judge_peers},
      {{"nccl.nvls", "can the NVLink switches sum up", "NVLS multicast support is …", Verdict::warn, nccl_page},
       judge_nvls},
      {{"nccl.dma_buf", "do the GPUs and the network have dma-buf", "DMA-BUF is available on GPU device …",
        Verdict::warn, nccl_page},
       judge_dma_buf},
      {{"nccl.mtu", "do the ports send large packets", "NET/IB: … mtu …", Verdict::warn, nccl_page}, judge_mtu},
      {{"nccl.warnings", "does NCCL warn of anything", "NCCL WARN", Verdict::warn, nccl_page}, judge_warnings}};
  return all;
}

const About version_check{"nccl.version", "do all ranks load the same NCCL", "NCCL version …", Verdict::fail,
                          nccl_page};

void judge_versions(const std::vector<NodeLog>& nodes, std::vector<StageFinding>& out) {
  std::map<std::string, std::size_t> count;
  for (const NodeLog& log : nodes) {
    for (const std::string& version : log.versions) ++count[version];
  }
  if (count.empty()) {
    Findings none;
    none.unknown("the version of NCCL", "its log does not name it");
    out.push_back({version_check.id, none.list().front(), ""});
  } else if (count.size() == 1) {
    out.push_back({version_check.id, {Verdict::pass, "NCCL " + count.begin()->first, ""}, ""});
  } else {
    for (const NodeLog& log : nodes) {
      if (log.versions.empty()) continue;
      out.push_back({version_check.id,
                     {Verdict::fail, fmt::format("NCCL {}; the ranks differ", text_of(log.versions)),
                      "give all nodes the same libnccl.so.2: look at LD_LIBRARY_PATH and at the container's image"},
                     log.node.host});
    }
  }
}

}  // namespace

std::vector<StageFinding> judge_nccl(const std::vector<Node>& nodes, const std::vector<RankLog>& logs) {
  std::vector<NodeLog> all;
  all.reserve(nodes.size());
  for (const Node& node : nodes) all.push_back(log_of(node, logs, nodes.size() > 1));
  std::vector<StageFinding> said;
  for (const NodeCheck& check : node_checks()) {
    for (const NodeLog& log : all) {
      Findings found;
      if (log.logs.empty()) {
        found.unknown("what NCCL did", "no rank of the node brought a log home");
      } else {
        check.judge(log, found);
      }
      for (const Finding& finding : found.list()) said.push_back({check.about.id, finding, log.node.host});
    }
  }
  judge_versions(all, said);
  return said;
}

std::vector<About> nccl_checks() {
  std::vector<About> all;
  for (const NodeCheck& check : node_checks()) all.push_back(check.about);
  all.push_back(version_check);
  return all;
}

}  // namespace harness::doctor
