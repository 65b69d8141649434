#include "plan/from_model.h"

#include "base/error.h"
#include "plan/why_impossible.h"
#include "workloads/workload.h"

namespace harness::plan {
namespace {

// A training step of the configured model with the baseline's settings.
struct TrainingStep {
  std::string why_impossible;
  program::ProgramSet programs;  // of a possible one
};

TrainingStep training_step(const config::Experiment& e, int ranks, const machine::Topology& topology) {
  config::Settings training = e.baseline;
  training.workload = config::training_workload;
  const Division division = divide_ranks(e.model, training, ranks, under_faults(e, training, topology));
  if (!division.why_impossible.empty()) return {division.why_impossible, {}};
  return {"", workloads::build_programs(e.model, training, division.layout)};
}

// The values of the size of e's workload that the model's training step has.
std::vector<std::string> values_of(const config::Experiment& e, int ranks, const machine::Topology& topology) {
  const TrainingStep step = training_step(e, ranks, topology);
  if (!step.why_impossible.empty()) {
    fail("the model's training step cannot run on {} ranks: {}", ranks, step.why_impossible);
  }
  return workloads::workload_of(e.baseline).values_from_model(step.programs, e.baseline);
}

}  // namespace

config::Experiment with_model_values(const config::Experiment& experiment, int ranks,
                                     const machine::Topology& topology) {
  config::Experiment e = experiment;
  e.changes.clear();
  for (const config::Change& change : experiment.changes) {
    if (change.from_model.empty()) {
      e.changes.push_back(change);
      continue;
    }
    const config::Variable& variable = *config::find_variable(change.variable);
    try {
      for (const std::string& value : values_of(experiment, ranks, topology)) {
        if (value == variable.print(experiment.baseline)) continue;
        config::Settings settings = experiment.baseline;
        variable.parse(settings, value);
        e.changes.push_back({variable.name, value, std::move(settings), ""});
      }
    } catch (const Error& error) {
      fail("{}: from_model: {}", change.from_model, error.what());
    }
  }
  return e;
}

void name_uses(Plan& plan) {
  const config::Experiment& e = plan.experiment;
  if (e.model.layers == 0 || e.baseline.workload == config::training_workload) return;
  const TrainingStep step = training_step(e, plan.ranks, plan.topology);
  if (!step.why_impossible.empty()) return;
  const workloads::Workload& workload = workloads::workload_of(e.baseline);
  for (PlannedCase& planned : plan.cases) {
    if (planned.is_possible()) planned.uses = workload.uses_in_model(step.programs, planned.settings);
  }
}

}  // namespace harness::plan
