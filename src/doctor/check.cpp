#include "doctor/check.h"

namespace harness::doctor {
namespace {

// Which settings decide how ranks talk to each other.
bool must_agree(std::string_view name) {
  return name.starts_with("NCCL_") || name.starts_with("UCX_") || name.starts_with("FI_") ||
         name == "CUDA_DEVICE_MAX_CONNECTIONS" || name == "CUDA_LAUNCH_BLOCKING";
}

}  // namespace

Cluster::Cluster(const std::vector<Node>& nodes) {
  for (const Node& node : nodes) {
    for (const Port& port : ports_of(node.facts)) {
      if (!node.facts.has(port.key + "state")) continue;
      PortUse& use = ports[port.name()];
      ++use.nodes;
      use.active += is_active(node.facts, port) ? 1 : 0;
    }
    ranks += node.ranks.size();
    for (const Rank& rank : node.ranks) {
      for (const std::string& name : rank.facts.under("env")) {
        if (must_agree(name)) ++settings[name][rank.facts.text("env/" + name)];
      }
    }
  }
}

std::string_view name_of(Verdict verdict) {
  switch (verdict) {
    case Verdict::fail:
      return "fail";
    case Verdict::warn:
      return "warn";
    case Verdict::unknown:
      return "unknown";
    case Verdict::info:
      return "info";
    case Verdict::skip:
      return "skip";
    case Verdict::pass:
      return "pass";
  }
  return "";
}

bool Findings::nothing_in(const machine::Reading& reading, const std::string& what, const std::string& without) {
  if (reading.access == machine::Access::unreadable) unknown(what, reading.why);
  if (reading.access == machine::Access::absent) skip(without);
  return !reading.ok();
}

const std::vector<Check>& checks() {
  static const std::vector<Check> all = [] {
    std::vector<Check> together;
    for (const auto& family :
         {gpu_checks(), port_checks(), pcie_checks(), rank_checks(), system_checks(), lint_checks()}) {
      together.insert(together.end(), family.begin(), family.end());
    }
    return together;
  }();
  return all;
}

}  // namespace harness::doctor
