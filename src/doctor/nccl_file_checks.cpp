// The files that NCCL consists of on a node, and what is set for MPI.
#include <algorithm>
#include <array>

#include "base/error.h"
#include "base/text.h"
#include "doctor/check.h"

namespace harness::doctor {
namespace {

using Version = std::array<int, 3>;

std::string_view first_of(std::string_view files) {
  return files.substr(0, files.find(", "));
}

// From the name of a file, "libnccl.so.2.27.3"; nothing where it does not tell, as in Python's packages.
std::optional<Version> version_of(std::string_view file) {
  constexpr std::string_view stem = "libnccl.so.";
  const std::size_t at = file.rfind(stem);
  if (at == std::string_view::npos) return std::nullopt;
  Cursor rest{file.substr(at + stem.size())};
  Version version{};
  for (int& part : version) {
    if (!rest.integer(part)) return std::nullopt;
    rest.literal(".");
  }
  return version;
}

// A feature that this node needs and older NCCLs lack: NVIDIA/nccl's history of src/transport/net_ib and ib_gid.
struct Need {
  Version since;
  std::string what;
};

std::vector<Need> needs_of(const Node& node) {
  const Facts& facts = node.facts;
  std::vector<Need> needs;
  const std::vector<Port> ports = active_ports(facts);
  const auto roce = [&](const Port& port) { return is_roce(facts, port); };
  if (std::ranges::any_of(ports, roce) && setting_of(node, "NCCL_IB_GID_INDEX").empty())
    needs.push_back({{2, 21, 0}, "it does not find the addresses of RoCE itself; set NCCL_IB_GID_INDEX"});
  const std::string peermem = facts.text("driver/peermem");
  if (!ports.empty() && facts.any("driver/gpu") && peermem.empty() && facts.text("driver/open") == "yes")
    needs.push_back({{2, 13, 4}, "it has no dma-buf, the only way to GPUDirect RDMA here"});
  return needs;
}

// The file of a plugin for networks that NCCL loads, as it looks for it; "" where there is none.
std::string plugin_of(const Node& node) {
  const std::string wanted = setting_of(node, "NCCL_NET_PLUGIN");
  if (wanted == "none") return "";
  const std::vector<std::string> names =
      wanted.empty() ? std::vector<std::string>{"libnccl-net.so"}
                     : std::vector<std::string>{wanted, fmt::format("libnccl-net-{}.so", wanted)};
  for (const std::string& name : names) {
    if (const std::string files = node.facts.text("library/" + name); !files.empty())
      return std::string(first_of(files));
  }
  return wanted.starts_with('/') ? wanted : "";  // a file that the linker need not look for
}

std::vector<std::string> parts_of(std::string_view list) {
  std::vector<std::string> parts;
  for (const std::string_view part : split(list, ',')) {
    if (!trim(part).empty()) parts.emplace_back(trim(part));
  }
  return parts;
}

constexpr std::array<const char*, 5> names{"OMPI_MCA_pml", "OMPI_MCA_btl", "OMPI_MCA_btl_tcp_if_include", "UCX_TLS",
                                           "UCX_NET_DEVICES"};

// Says skip where nothing is set.
bool nothing_for_mpi(const Node& node, Findings& out) {
  const auto is_set = [&](const char* name) { return !setting_of(node, name).empty(); };
  if (std::ranges::none_of(names, is_set)) out.skip("nothing is set for MPI");
  return !out.empty();
}

// Whether the node has what an entry names: an interface, a port of an adapter, or a network ("10.0.0.0/16").
bool has_device(const Facts& facts, const std::string& entry) {
  if (entry.find('/') != std::string::npos || entry == "all") return true;
  const std::vector<std::string> interfaces = facts.under("net");
  const std::vector<Port> ports = ports_of(facts);
  return std::ranges::find(interfaces, entry) != interfaces.end() ||
         std::ranges::any_of(ports, [&](const Port& port) { return port.name() == entry || port.device == entry; });
}

}  // namespace

void look::nccl_library(const Node& node, const Cluster&, Findings& out) {
  const Facts& facts = node.facts;
  if (!has_gpus(facts)) return out.skip("no NVIDIA GPU");
  const machine::Reading& files = facts["library/libnccl.so.2"];
  if (!files.ok()) {
    const std::string& why = files.why.empty() ? facts["library"].why : files.why;
    if (!why.empty()) return out.unknown("the linker's folders", why);
    return out.skip("the linker finds no libnccl.so.2; programs such as PyTorch bring one");
  }
  const std::string_view taken = first_of(files.text);
  const auto version = version_of(taken);
  const std::vector<Need> needs = needs_of(node);
  if (!version && !needs.empty()) out.unknown("the version of NCCL", fmt::format("the name {} has none", taken));
  for (const Need& need : needs) {
    if (version && *version < need.since)
      out.warn(fmt::format("the linker takes {}: before {}.{}.{} {}", taken, need.since[0], need.since[1],
                           need.since[2], need.what),
               "install a newer NCCL");
  }
  if (taken.size() < files.text.size()) {
    out.info(fmt::format("the linker takes {}; there are also {}", taken, files.text.substr(taken.size() + 2)),
             "NCCL's log says which version a program has: NCCL_DEBUG=VERSION");
  }
  if (out.empty()) out.pass(std::string(taken));
}

void look::nccl_plugin_file(const Node& node, const Cluster&, Findings& out) {
  const Facts& facts = node.facts;
  if (!has_gpus(facts)) return out.skip("no NVIDIA GPU");
  const std::string wanted = setting_of(node, "NCCL_NET_PLUGIN"), found = plugin_of(node);
  if (!found.empty()) return out.pass(found);
  if (const auto& folders = facts["library"]; folders.access == machine::Access::unreadable)
    return out.unknown("the linker's folders", folders.why);
  const bool efa = has_efa(facts);
  if (efa && wanted.empty() && facts.has("library/libnccl-net-ofi.so")) {
    return out.warn("the plugin for EFA is there under a name that NCCL does not look for: NCCL uses sockets",
                    "NCCL_NET_PLUGIN=ofi");
  }
  if (efa) {
    return out.warn("NCCL finds no plugin for EFA (libnccl-net.so): it uses sockets",
                    "install aws-ofi-nccl, and let LD_LIBRARY_PATH lead to it; a container must have it inside");
  }
  if (!wanted.empty() && wanted != "none") {
    return out.warn(fmt::format("NCCL_NET_PLUGIN={}, but the linker finds neither {} nor libnccl-net-{}.so: NCCL goes "
                                "on without it",
                                wanted, wanted, wanted),
                    "let LD_LIBRARY_PATH lead to it, or unset NCCL_NET_PLUGIN");
  }
  out.pass("none, and none is needed");
}

void look::nccl_sharp(const Node& node, const Cluster&, Findings& out) {
  if (!has_gpus(node.facts)) return out.skip("no NVIDIA GPU");
  if (setting_of(node, "NCCL_COLLNET_ENABLE") != "1") return out.skip("NCCL_COLLNET_ENABLE is not set to 1");
  if (const std::string found = plugin_of(node); !found.empty())
    return out.pass(found + "; whether the fabric has SHARP, NCCL's log says");
  if (const auto& folders = node.facts["library"]; folders.access == machine::Access::unreadable)
    return out.unknown("the linker's folders", folders.why);
  out.warn("NCCL_COLLNET_ENABLE=1 asks for SHARP, but NCCL finds no plugin for it (libnccl-net.so)",
           "use HPC-X, whose nccl_rdma_sharp_plugin has it, or unset NCCL_COLLNET_ENABLE");
}

void look::mpi_devices(const Node& node, const Cluster&, Findings& out) {
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

}  // namespace harness::doctor
