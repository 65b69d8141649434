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
  sim::Trust trust;              // of the step
  std::optional<double> change;  // share by which it is longer than the baseline's, per token where these differ
  std::string unknown;  // "the prediction does not know nccl_algo"; "" where there is a step, and of an impossible case
};

/// How the ranks of a plan stand, as given (0: not given). A prediction takes the machines that its hardware is usually
/// part of where nothing says it; else it is not known then. Throws
/// Error if a node of that hardware has fewer GPUs.
machine::Topology planned_topology(const config::Experiment& experiment, int ranks, int ranks_per_node);

/// Of each case of a plan, by its number; none where the backend does not predict. Throws Error where a number is not
/// known that every prediction needs.
std::vector<PredictedCase> predict_cases(const plan::Plan& plan);
/// Takes out of a plan, as impossible, the cases of which there is no prediction. Throws Error as predict_cases() does,
/// and if the baseline is one of them.
void leave_out_unpredicted(plan::Plan& plan);
/// A table of what was predicted, for a person.
std::string predictions_text(const plan::Plan& plan, const std::vector<PredictedCase>& predicted);

}  // namespace harness::cli
