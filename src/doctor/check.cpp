#include "doctor/check.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstddef>

#include "nccl/names.h"

namespace harness::doctor {
namespace {

// Which settings decide how ranks talk to each other. What images and build systems set with such a name does not.
bool must_agree(std::string_view name) {
  const nccl::ForeignName* foreign = nccl::find_foreign_name(name);
  if (foreign != nullptr && !foreign->is_prefix()) return false;
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
  static constexpr std::array names{"fail", "warn", "unknown", "info", "skip", "pass"};
  return names[static_cast<std::size_t>(verdict)];
}

bool Findings::nothing_in(const machine::Reading& reading, const std::string& what, const std::string& without) {
  if (reading.access == machine::Access::unreadable) unknown(what, reading.why);
  if (reading.access == machine::Access::absent) skip(without);
  return !reading.ok();
}

bool no_nvml(const Node& node, Findings& out) {
  if (!has_gpus(node.facts)) {
    out.skip("no NVIDIA GPU");
  } else if (!node.facts["nvml"].ok()) {
    out.skip("NVML does not tell: see gpu.nvml");
  }
  return !out.empty();
}

bool no_ports(const Node& node, Findings& out) {
  if (const auto& hcas = node.facts["hcas"]; hcas.access == machine::Access::unreadable) {
    out.unknown("/sys/class/infiniband", hcas.why);
  } else if (ports_of(node.facts).empty()) {
    out.skip("no adapter for RDMA");
  } else if (real_ports(node.facts).empty()) {
    out.skip("EFA: its driver does not tell");
  }
  return !out.empty();
}

bool no_active_ports(const Node& node, Findings& out) {
  if (no_ports(node, out)) return true;
  if (active_ports(node.facts).empty()) out.skip("no active port");
  return !out.empty();
}

std::string rate_text(double bytes_per_s) {
  return fmt::format("{:.4g} GB/s", bytes_per_s / 1e9);
}

std::string setting_of(const Node& node, const Rank& rank, const std::string& name) {
  return rank.facts.has("env/" + name) ? rank.facts.text("env/" + name) : node.facts.text("nccl_conf/" + name);
}

std::string setting_of(const Node& node, const std::string& name) {
  return node.ranks.empty() ? "" : setting_of(node, node.ranks.front(), name);
}

std::vector<Finding> judge(const Check& check, const Node& node, const Cluster& cluster) {
  std::vector<const Facts*> all{&node.facts};
  for (const Rank& rank : node.ranks) all.push_back(&rank.facts);
  for (const Facts* facts : all) facts->forget_what_was_asked();
  Findings findings;
  check.look(node, cluster, findings);
  const auto passes = [](const Finding& finding) { return finding.verdict == Verdict::pass; };
  if (!std::ranges::all_of(findings.list(), passes)) return findings.list();
  for (const Facts* facts : all) {
    const std::string& name = facts->asked_in_vain();
    if (name.empty()) continue;
    Findings open;
    open.unknown(name, facts->peek(name).why);
    return open.list();
  }
  return findings.list();
}

const std::vector<Check>& checks() {
  static const std::vector<Check> all = [] {
    std::vector<Check> together;
    for (const auto& family : {gpu_checks(), nvlink_checks(), gdr_checks(), port_checks(), pcie_checks(), rank_checks(),
                               system_checks(), nccl_file_checks(), lint_checks(), mpi_checks()}) {
      together.insert(together.end(), family.begin(), family.end());
    }
    return together;
  }();
  return all;
}

}  // namespace harness::doctor
