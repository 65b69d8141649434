// The files of NCCL that the linker finds on a node.
#include "base/error.h"
#include "base/text.h"
#include "doctor/check.h"

namespace harness::doctor {
namespace {

std::string first_of(const std::string& files) {
  return files.substr(0, files.find(", "));
}

// The file of a plugin for networks that NCCL loads, as it looks for it; "" where there is none.
std::string plugin_of(const Node& node, const std::string& wanted) {
  if (wanted.starts_with('/')) return wanted;  // a file that the linker need not look for
  for (const std::string& name : {wanted, fmt::format("libnccl-net-{}.so", wanted)}) {
    if (const std::string files = node.facts.text("library/" + name); !files.empty()) return first_of(files);
  }
  return "";
}

}  // namespace

void look::nccl_library(const Node& node, const Cluster&, Findings& out) {
  if (!has_gpus(node.facts)) return out.skip("no NVIDIA GPU");
  const machine::Reading& files = node.facts["library/libnccl.so.2"];
  if (!files.ok()) {
    const std::string& why = files.why.empty() ? node.facts["library"].why : files.why;
    if (!why.empty()) return out.unknown("the linker's folders", why);
    return out.skip("the linker finds no libnccl.so.2; programs such as PyTorch bring one");
  }
  const std::string taken = first_of(files.text);
  if (taken.size() == files.text.size()) return out.pass(taken);
  out.info(fmt::format("the linker takes {}; there are also {}", taken, files.text.substr(taken.size() + 2)),
           "NCCL's log says which version a program has: NCCL_DEBUG=VERSION");
}

void look::nccl_plugin_file(const Node& node, const Cluster&, Findings& out) {
  if (!has_gpus(node.facts)) return out.skip("no NVIDIA GPU");
  const std::string wanted = setting_of(node, "NCCL_NET_PLUGIN");
  if (const std::string found = plugin_of(node, wanted.empty() ? "libnccl-net.so" : wanted); !found.empty())
    return out.pass(found);
  if (const auto& folders = node.facts["library"]; folders.access == machine::Access::unreadable)
    return out.unknown("the linker's folders", folders.why);
  const std::string needs_it = has_efa(node.facts)                              ? "EFA"
                               : !wanted.empty() && wanted != "none"            ? "NCCL_NET_PLUGIN=" + wanted
                               : setting_of(node, "NCCL_COLLNET_ENABLE") == "1" ? "SHARP (NCCL_COLLNET_ENABLE=1)"
                                                                                : "";
  if (needs_it.empty()) return out.pass("none, and none is needed");
  out.warn(
      fmt::format("NCCL finds no plugin ({}), which {} needs: it goes on without",
                  wanted.empty() ? "libnccl-net.so" : wanted, needs_it),
      "let LD_LIBRARY_PATH lead to aws-ofi-nccl (EFA; NCCL_NET_PLUGIN=ofi where its file is libnccl-net-ofi.so) or "
      "to HPC-X (SHARP), inside of a container too; or unset the variable");
}

}  // namespace harness::doctor
