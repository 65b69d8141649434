#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "machine/topology.h"
#include "plan/plan.h"
#include "report/document.h"
#include "sim/link_time.h"
#include "sim/trust.h"

namespace harness::cli {

/// The prediction of a case: a step in virtual time, or why there is none.
struct PredictedCase {
  std::optional<sim::Prediction> step;
  sim::Trust trust;                // of the step
  std::optional<double> mfu;       // where the peak is known
  std::optional<double> change;    // share by which it is longer than the baseline's, per token where these differ
  bool too_close_to_call = false;  // the change is smaller than what a sweep of these predictions counts
  std::string unknown;  // "the prediction does not know nccl_algo"; "" where there is a step, and of an impossible case
  std::string cause;    // of that, without where in the step it was met: alike for all cases that have it
};

/// How the ranks of a plan stand, as given (0: not given). A prediction takes the machines that its hardware is usually
/// part of where nothing says it; else it is not known then. Throws
/// Error if a node of that hardware has fewer GPUs.
machine::Topology planned_topology(const config::Experiment& experiment, int ranks, int ranks_per_node);

/// Predicts cases on the hardware of a plan, one after another.
class Predictor {
 public:
  /// `plan` must outlive it. Throws Error where a number is not known that every prediction needs.
  explicit Predictor(const plan::Plan& plan);
  /// Predicts a possible case of this plan, or one that plan::case_of() made for it; without its change. `built`: its
  /// Programs, where a survey has them.
  PredictedCase operator()(const plan::PlannedCase& planned, plan::BuiltStep built = {}) const;

 private:
  sim::Prediction predict(const plan::PlannedCase& planned, plan::BuiltStep built) const;

  const plan::Plan& plan_;
  sim::Network network_;
};

/// Predicted seconds for each token, or for a step where it has none.
double seconds_per_work(const plan::PlannedCase& planned, const PredictedCase& predicted);
/// Whether a predicted change, as a share, is smaller than what counts: the one rule for what is predicted, that of the
/// report of a predicted sweep.
bool too_close_to_call(double change, const config::Experiment& experiment);

/// Predictions of a plan's cases, by their number; none where the backend does not predict. Throws Error as Predictor
/// does.
std::vector<PredictedCase> predict_cases(const plan::Plan& plan);
/// Takes out of a plan, as impossible, the cases of which there is no prediction. Throws Error as predict_cases() does,
/// and if the baseline is one of them.
void leave_out_unpredicted(plan::Plan& plan);

/// "predicted, not measured: ", by which calibration, and of how many ranks.
report::List prediction_lines(const plan::Plan& plan);
/// Adds how far the predictions of some cases may be relied on, each text once and, where not all cases have it, with
/// the number of those that do; and the change (0: none) that is too close to call.
void add_trust(std::span<const sim::Trust* const> cases, double smallest_effect, report::Section& section);
/// A row for each predicted case, and why the others have no prediction. `predicted`: by the number of the case.
report::Section predictions_section(const plan::Plan& plan, const std::vector<PredictedCase>& predicted);

}  // namespace harness::cli
