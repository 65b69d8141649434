#include "plan/why_impossible.h"

#include <algorithm>
#include <utility>

#include "base/error.h"
#include "base/units.h"
#include "program/placement.h"
#include "workloads/workload.h"

namespace harness::plan {
namespace {

// As set; data parallelism takes the ranks that remain.
Division layout_on(const config::Settings& s, int ranks, const machine::Topology& topology) {
  const std::int64_t replica = s.replica_ranks();
  if (ranks % replica != 0) {
    std::vector<std::string> sizes;
    for (const program::Axis axis : program::configurable_axes) {
      sizes.push_back(fmt::format("{} {}", program::row_of(axis).key, s.layout[axis]));
    }
    if (s.context() > 1) sizes.push_back(fmt::format("context_parallel {}", s.context()));
    return {{}, fmt::format("{} = {} does not divide {} ranks", fmt::join(sizes, " * "), replica, ranks)};
  }
  program::Layout layout = s.layout;
  // Ranks that share a sequence stand side by side along the data axis: they reduce gradients as replicas do.
  layout[program::Axis::data] = static_cast<int>(ranks / replica) * s.context();
  layout[program::Axis::context] = 1;
  if (topology.is_known()) layout.replicas_of_node = program::replicas_of_node(layout, topology.node_of);
  return {layout, ""};
}

}  // namespace

std::string why_impossible(const config::Settings& settings, const std::optional<config::Hardware>& hardware) {
  for (const config::Variable& variable : config::registry()) {
    if (std::string why = variable.conflict(settings); !why.empty()) return why;
  }
  if (!hardware) return "";
  for (const config::Variable& variable : config::registry()) {
    if (std::string why = variable.lacking(settings, *hardware); !why.empty()) return why;
  }
  return "";
}

Division divide_ranks(const config::Model& model, const config::Settings& settings, int ranks,
                      const machine::Topology& topology) {
  if (settings.ranks > ranks) return {{}, fmt::format("ranks is {}, but the job has only {}", settings.ranks, ranks)};
  const workloads::Workload& workload = workloads::workload_of(settings);
  if (std::string why = workload.why_impossible(model, settings); !why.empty()) return {{}, std::move(why)};
  Division division = layout_on(settings, settings.ranks == 0 ? ranks : settings.ranks, topology);
  if (!division.why_impossible.empty()) return division;
  division.why_impossible = workload.why_impossible_on(model, settings, division.layout);
  return division;
}

}  // namespace harness::plan
