#include <algorithm>
#include <set>

#include "analysis/cases.h"
#include "base/text.h"
#include "explain/explain.h"
#include "job/sim/simulated_job.h"
#include "plan/plan.h"
#include "program/links.h"
#include "sweep/rounds.h"
#include "workloads/workload.h"

namespace harness::explain {
namespace {

config::Experiment healthy_experiment(const store::Result& result) {
  const config::BackendTraits& traits = config::traits_of(result.backend);
  if (!traits.predicts() && !result.ranks_are_gpus())
    fail("predictions know GPUs alone, and ranks of the backend {} are none", result.backend);
  config::Experiment e;
  try {
    e = config::load_experiment(result.config_path, result.overrides, result.config_text);
    if (!e.calibration) e.calibration = config::calibration_named("harness");
    if (!e.hardware && !e.without_hardware && !result.rank_table.empty())
      e.hardware = config::find_hardware_for_device(result.rank_table.front().device, result.config_path);
  } catch (const Error& error) {
    const std::string why = error.what();
    fail("its configuration cannot be read again ({})", why.substr(0, why.find('\n')));
  }
  if (!e.hardware)
    fail("nothing says what its GPUs promise; name them in the configuration (`hardware: h100-sxm`) and measure again");
  e.backend = config::BackendKind::sim;
  e.faults = {};
  return e;
}

std::vector<int> nodes_of(const store::Result& result) {
  std::vector<int> node_of(result.rank_count(), 0);
  for (const store::ResultRank& row : result.rank_table) {
    if (row.rank >= 0 && row.rank < result.ranks) node_of[static_cast<std::size_t>(row.rank)] = row.node;
  }
  return node_of;
}

store::Result job_of(const store::Result& result, const program::ProgramSet& set, const store::ResultCase& of) {
  store::Result alone;
  alone.backend = "sim";
  alone.ranks = set.layout.ranks();
  alone.variables = result.variables;
  alone.rank_table = result.rank_table;
  alone.cases.push_back(of);
  alone.cases.front().name = store::baseline_name;
  alone.cases.front().reference = 0;
  alone.cases.front().layout = set.layout;
  for (std::int32_t rank = 0; rank < alone.ranks; ++rank) {
    const program::Coordinates at = set.layout.coordinates(rank);
    alone.roles.push_back({0, rank, set.role_of(at), at});
  }
  return alone;
}

}  // namespace

Reference reference_of(const store::Result& result) {
  Reference reference;
  reference.experiment = healthy_experiment(result);
  reference.node_of = nodes_of(result);
  std::ranges::sort(reference.node_of);
  return reference;
}

std::vector<int> nodes_of_case(const store::Result& result, std::int32_t case_index) {
  std::vector<int> node_of = nodes_of(result);
  for (const store::ResultRole& row : store::roles_of(result, case_index)) {
    if (row.node >= 0) node_of[static_cast<std::size_t>(row.rank)] = row.node;
  }
  return node_of;
}

bool stand_node_by_node(const std::vector<int>& node_of) {
  std::set<int> left;
  for (std::size_t rank = 1; rank < node_of.size(); ++rank) {
    if (node_of[rank] == node_of[rank - 1]) continue;
    left.insert(node_of[rank - 1]);
    if (left.contains(node_of[rank])) return false;
  }
  return true;
}

CaseModel::CaseModel(const Reference& reference, const store::Result& result, std::int32_t case_index)
    : reference_(reference), stood_(nodes_of_case(result, case_index)) {
  const store::ResultCase& of = result.case_at(case_index);
  settings_ = analysis::settings_of(result, of);
  settings_.mended.clear();
  if (const auto names = sim::ignored_between(reference.experiment.baseline, settings_); !names.empty())
    throw sim::NotPredicted(fmt::format("a prediction does not know {}", names.front()));
  const plan::Division division =
      plan::divide_ranks(result.model, settings_, result.ranks, machine::Topology{reference.node_of});
  if (!division.why_impossible.empty()) fail("{}", division.why_impossible);
  set_ = workloads::build_programs(result.model, settings_, division.layout);
  alone_ = job_of(result, set_, of);
}

store::Result CaseModel::predict(const config::Faults& faults, double slower) const {
  config::Experiment experiment = reference_.experiment;
  experiment.faults = faults;
  if (slower == 1) return predict_on(experiment);
  return predict_on(experiment, [slower](const program::ProgramSet& /*set*/, const program::Operation& op) {
    return program::is_communication(op.action) ? 1.0 : slower;
  });
}

store::Result CaseModel::predict_on(const config::Experiment& experiment, const sim::Slowdown& slowdown) const {
  const sim::Simulation simulation(set_, settings_, experiment, sim::network_of(experiment, reference_.node_of),
                                   slowdown);
  store::Result result = alone_;
  program::LeastTimes no_limits(simulation.set(), reference_.node_of, {});
  sweep::add_timeline(result, 0, simulation.set(), simjob::profiled_samples(simulation, config::Timelines::roles),
                      no_limits);
  return result;
}

}  // namespace harness::explain
