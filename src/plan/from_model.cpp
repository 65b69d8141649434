#include "plan/from_model.h"

#include "base/error.h"
#include "plan/plan.h"
#include "workloads/workload.h"

namespace harness {
namespace {

// The values of the size of e's workload that the model's training step has.
std::vector<std::string> values_of(const Experiment& e, int ranks) {
  Settings training = e.baseline;
  training.workload = training_workload;
  Layout layout;
  if (const std::string why = check_layout(e.model, training, ranks, layout); !why.empty()) {
    fail("the model's step cannot be had on {} ranks: {}", ranks, why);
  }
  return workload_of(e.baseline).values_from_model(build_programs(e.model, training, layout), e.baseline);
}

}  // namespace

Experiment with_model_values(const Experiment& experiment, int ranks) {
  Experiment e = experiment;
  e.changes.clear();
  for (const Change& change : experiment.changes) {
    if (change.from_model.empty()) {
      e.changes.push_back(change);
      continue;
    }
    const Variable& variable = *find_variable(change.variable);
    try {
      for (const std::string& value : values_of(experiment, ranks)) {
        if (value == variable.print(experiment.baseline)) continue;
        Settings settings = experiment.baseline;
        variable.parse(settings, value);
        e.changes.push_back({variable.name, value, std::move(settings), ""});
      }
    } catch (const Error& error) {
      fail("{}: from_model: {}", change.from_model, error.what());
    }
  }
  return e;
}

}  // namespace harness
