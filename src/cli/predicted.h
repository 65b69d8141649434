#pragma once

#include <optional>
#include <string>
#include <vector>

#include "machine/topology.h"
#include "plan/plan.h"
#include "sim/trust.h"

namespace harness::cli {

/// What is predicted of a case: a step in virtual time, or why there is none.
struct PredictedCase {
  std::optional<sim::Prediction> step;
  sim::Trust trust;     // of the step
  std::string unknown;  // "the prediction does not know nccl_algo"; "" where there is a step, and of an impossible case
};

/// How many ranks stand on a node where nothing else says so: as in the machines that the hardware is usually part of.
int usual_ranks_per_node(const config::Experiment& experiment);

/// Of each case of a plan, by its number; none where the backend does not predict. Throws Error where a number is not
/// known that every prediction needs.
std::vector<PredictedCase> predict_cases(const plan::Plan& plan, const machine::Topology& topology);
/// A table of what was predicted, for a person.
std::string predictions_text(const plan::Plan& plan, const std::vector<PredictedCase>& predicted,
                             const machine::Topology& topology);

}  // namespace harness::cli
