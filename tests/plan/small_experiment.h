#pragma once

#include <string>
#include <vector>

#include "config/experiment.h"
#include "plan/plan.h"

namespace harness::test {

/// Returns an experiment with a small model, four rounds and no change.
inline config::Experiment small_experiment() {
  config::Experiment e;
  e.path = "small.yaml";
  e.model = {"custom", 4, 128, 4, 2048, 128};
  e.measure.rounds = 4;
  return e;
}

/// Adds a case: `variable` with that value.
inline void add_change(config::Experiment& e, const std::string& variable, const std::string& value) {
  config::Change change{variable, "", e.baseline};
  config::find_variable(variable)->parse(change.settings, value);
  change.value = config::find_variable(variable)->print(change.settings);
  e.changes.push_back(change);
}

/// Returns the names of a plan's cases, in order.
inline std::vector<std::string> names_of(const plan::Plan& plan) {
  std::vector<std::string> names;
  for (const plan::PlannedCase& planned : plan.cases) names.push_back(planned.name);
  return names;
}

}  // namespace harness::test
