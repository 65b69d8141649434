// The files that NCCL consists of on a node: the library, and plugins that it loads itself.
#include <algorithm>
#include <array>
#include <charconv>
#include <set>

#include "base/error.h"
#include "base/text.h"
#include "doctor/check.h"
#include "doctor/docs.h"

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
  std::string_view rest = file.substr(at + stem.size());
  Version version{};
  for (int& part : version) {
    const auto [end, error] = std::from_chars(rest.data(), rest.data() + rest.size(), part);
    if (error != std::errc()) return std::nullopt;
    rest.remove_prefix(static_cast<std::size_t>(end - rest.data()));
    if (rest.starts_with('.')) rest.remove_prefix(1);
  }
  return version;
}

// What this node needs of NCCL that older ones lack: NVIDIA/nccl's history of src/transport/net_ib and ib_gid.
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

void library(const Node& node, const Cluster&, Findings& out) {
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
  for (const Need& need : needs_of(node)) {
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

void plugin(const Node& node, const Cluster&, Findings& out) {
  const Facts& facts = node.facts;
  if (!has_gpus(facts)) return out.skip("no NVIDIA GPU");
  const std::string wanted = setting_of(node, "NCCL_NET_PLUGIN"), found = plugin_of(node);
  if (!found.empty()) return out.pass(found);
  if (const auto& folders = facts["library"]; folders.access == machine::Access::unreadable)
    return out.unknown("the linker's folders", folders.why);
  const std::vector<Port> ports = ports_of(facts);
  const bool efa = std::ranges::any_of(ports, [&](const Port& port) { return is_efa(facts, port); });
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

void sharp(const Node& node, const Cluster&, Findings& out) {
  if (!has_gpus(node.facts)) return out.skip("no NVIDIA GPU");
  if (setting_of(node, "NCCL_COLLNET_ENABLE") != "1") return out.skip("NCCL_COLLNET_ENABLE is not set to 1");
  if (const std::string found = plugin_of(node); !found.empty())
    return out.pass(found + "; whether the fabric has SHARP, NCCL's log says");
  if (const auto& folders = node.facts["library"]; folders.access == machine::Access::unreadable)
    return out.unknown("the linker's folders", folders.why);
  out.warn("NCCL_COLLNET_ENABLE=1 asks for SHARP, but NCCL finds no plugin for it (libnccl-net.so)",
           "use HPC-X, whose nccl_rdma_sharp_plugin has it, or unset NCCL_COLLNET_ENABLE");
}

}  // namespace

std::vector<Check> nccl_file_checks() {
  const std::string folders = "LD_LIBRARY_PATH, /etc/ld.so.conf, the linker's folders";
  return {{"nccl.library", "is the NCCL that the linker finds new enough for this node", folders, docs::ld_so, library},
          {"nccl.plugin_file", "does NCCL find the plugin that the network needs", folders + "; NCCL_NET_PLUGIN",
           docs::ofi, plugin},
          {"nccl.sharp", "does NCCL find what SHARP needs, if it is asked for", folders + "; NCCL_COLLNET_ENABLE",
           docs::nccl_env, sharp}};
}

}  // namespace harness::doctor
