// What is set for MPI. NCCL looks at none of it.
#include <algorithm>
#include <array>
#include <set>

#include "base/error.h"
#include "base/text.h"
#include "doctor/check.h"
#include "doctor/docs.h"

namespace harness::doctor {
namespace {

std::vector<std::string> parts_of(std::string_view list) {
  std::vector<std::string> parts;
  for (const std::string_view part : split(list, ',')) {
    if (!trim(part).empty()) parts.emplace_back(trim(part));
  }
  return parts;
}

// Of a list that allows, and does not forbid: whether it has none of these words.
bool leaves_out_all(const std::string& list, const std::set<std::string>& words) {
  const std::vector<std::string> parts = parts_of(list);
  if (parts.empty() || list.starts_with('^')) return false;
  return std::ranges::none_of(parts, [&](const std::string& part) { return words.contains(part); });
}

constexpr std::array<const char*, 5> names{"OMPI_MCA_pml", "OMPI_MCA_btl", "OMPI_MCA_btl_tcp_if_include", "UCX_TLS",
                                           "UCX_NET_DEVICES"};

// Says skip where nothing is set.
bool nothing_for_mpi(const Node& node, Findings& out) {
  const auto is_set = [&](const char* name) { return !setting_of(node, name).empty(); };
  if (std::ranges::none_of(names, is_set)) out.skip("nothing is set for MPI");
  return !out.empty();
}

void transports(const Node& node, const Cluster&, Findings& out) {
  if (nothing_for_mpi(node, out)) return;
  static const std::set<std::string> in_open_mpi{"sm", "vader"};
  static const std::set<std::string> in_ucx{"all", "sm", "shm", "mm", "posix", "sysv", "cma", "knem", "xpmem"};
  for (const auto& [name, within] : {std::pair{"OMPI_MCA_btl", &in_open_mpi}, {"UCX_TLS", &in_ucx}}) {
    const std::string list = setting_of(node, name);
    if (!leaves_out_all(list, *within)) continue;
    out.info(fmt::format("{}={} leaves out shared memory: ranks of a node talk over the network", name, list),
             fmt::format("unset {}", name));
  }
  // ob1 has the transports of "btl", and unless one is named, none of RDMA is among them.
  static const std::set<std::string> of_rdma{"openib", "uct", "ofi"};
  const std::string btl = setting_of(node, "OMPI_MCA_btl");
  const bool by_rdma = !btl.empty() && !btl.starts_with('^') && !leaves_out_all(btl, of_rdma);
  if (same_word(setting_of(node, "OMPI_MCA_pml"), "ob1") && !by_rdma && !active_ports(node.facts).empty()) {
    out.info("OMPI_MCA_pml=ob1: MPI goes over TCP between nodes, although they have RDMA",
             "unset OMPI_MCA_pml; what NCCL uses does not depend on it");
  }
  if (out.empty()) out.pass("shared memory within a node");
}

// Whether the node has what an entry names: an interface, a port of an adapter, or a network ("10.0.0.0/16").
bool has_device(const Facts& facts, const std::string& entry) {
  if (entry.find('/') != std::string::npos || entry == "all") return true;
  const std::vector<std::string> interfaces = facts.under("net");
  const std::vector<Port> ports = ports_of(facts);
  return std::ranges::find(interfaces, entry) != interfaces.end() ||
         std::ranges::any_of(ports, [&](const Port& port) { return port.name() == entry || port.device == entry; });
}

void mpi_devices(const Node& node, const Cluster&, Findings& out) {
  if (nothing_for_mpi(node, out)) return;
  const Facts& facts = node.facts;
  bool any = false;
  for (const char* name : {"OMPI_MCA_btl_tcp_if_include", "UCX_NET_DEVICES"}) {
    const std::string list = setting_of(node, name);
    if (list.empty() || list.starts_with('^')) continue;
    any = true;
    if (const auto& nets = facts["net"]; nets.access == machine::Access::unreadable)
      return out.unknown("the list of interfaces", nets.why);
    std::vector<std::string> missing = parts_of(list);
    std::erase_if(missing, [&](const std::string& entry) { return has_device(facts, entry); });
    if (missing.empty()) continue;
    out.warn(fmt::format("{}={}: the node has no {}", name, list, join_first(missing, 3)),
             "correct it; for NCCL the names are NCCL_SOCKET_IFNAME and NCCL_IB_HCA");
  }
  out.conclude(any, "they are there", "no list of devices is set for MPI");
}

}  // namespace

std::vector<Check> mpi_checks() {
  return {{"mpi.transports", "may MPI use shared memory within a node, and RDMA between nodes",
           "OMPI_MCA_pml, OMPI_MCA_btl, UCX_TLS of each node's first rank", docs::ucx, transports},
          {"mpi.devices", "does the node have the devices that MPI is told to use",
           "OMPI_MCA_btl_tcp_if_include, UCX_NET_DEVICES of each node's first rank; /sys/class/net", docs::ucx,
           mpi_devices}};
}

}  // namespace harness::doctor
