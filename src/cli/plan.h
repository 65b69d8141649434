#pragma once

#include <cstddef>
#include <functional>
#include <iosfwd>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "cli/verbs.h"
#include "machine/conditions.h"
#include "plan/plan.h"
#include "report/document.h"
#include "report/json.h"
#include "sim/link_time.h"
#include "sim/trust.h"

// The computation and layout of `plan`. `sweep` and `read` also use its predictions.

namespace harness::cli {

/// The prediction of a case: a step in virtual time, or the reason why there is none.
struct PredictedCase {
  std::optional<sim::Prediction> step;
  sim::Trust trust;                // how far to rely on the step
  std::optional<double> mfu;       // if the peak is known
  std::optional<double> change;    // share by which it exceeds the baseline's, per token if the batches differ
  bool too_close_to_call = false;  // the change is below the threshold of a sweep of these predictions
  std::string unknown;  // "the prediction does not know nccl_algo"; "" if there is a step, and for an impossible case
  std::string cause;    // `unknown` without the place in the step, so that cases with the same cause share it
};

/// The node of each rank of a plan; 0: not given. If nothing states the ranks per node, a prediction assumes the usual
/// machines of its hardware; otherwise they are unknown. Throws Error if a node of that hardware has fewer GPUs.
machine::Topology planned_topology(const config::Experiment& experiment, int ranks, int ranks_per_node);

/// The network of a plan's ranks. Throws Error if a number is unknown that every prediction needs.
sim::Network network_of(const plan::Plan& plan);
/// Predicts a possible case of this plan, or one from plan::case_of(), over its network; does not set `change`.
/// `built`: the case's Programs, if a survey already built them.
PredictedCase predict_case(const plan::Plan& plan, const sim::Network& network, const plan::PlannedCase& planned,
                           plan::BuiltStep built = {});

/// Predicted seconds per token, or per step if it has no tokens.
double seconds_per_work(const plan::PlannedCase& planned, const PredictedCase& predicted);
/// Whether a predicted change, as a share, is below the threshold. All predictions use this rule, including the report
/// of a predicted sweep.
bool too_close_to_call(double change, const config::Experiment& experiment);

/// Predictions of a plan's cases, by case number; empty if the backend does not predict. Throws Error as network_of().
std::vector<PredictedCase> predict_cases(const plan::Plan& plan);
/// Marks the cases without a prediction as impossible. Throws Error like predict_cases(), or if the baseline is one of
/// them.
void leave_out_unpredicted(plan::Plan& plan);

/// "predicted, not measured: ", with the calibration and the number of ranks.
report::List prediction_lines(const plan::Plan& plan);
/// Adds how far the predictions of some cases can be relied on, each text once and with the number of its cases unless
/// all have it; and the change that is too close to call (0: none).
void add_trust(std::span<const sim::Trust* const> cases, double smallest_effect, report::Section& section);
/// The baseline's step and the case that is clearly fastest, in a sentence with a space at its end; "" if a step
/// repeats one operation, or if the baseline has no prediction. `predicted`: by case number, as below.
std::string predicted_words(const plan::Plan& plan, const std::vector<PredictedCase>& predicted);
/// A row for each predicted case, how far to rely on it, and the reasons why others have no prediction.
report::Section predictions_section(const plan::Plan& plan, const std::vector<PredictedCase>& predicted);

struct RankedCombination {
  std::vector<std::pair<std::string, std::string>> settings;  // variables and values other than the baseline's
  plan::PlannedCase planned;
  PredictedCase predicted;
  double distance = 0;         // share by which it exceeds the fastest step, per token if the batches differ
  bool is_told_apart = false;  // whether the distance exceeds the error of predicted changes
};

/// The ranking of all combinations of the values that a configuration tries.
struct Best {
  std::vector<RankedCombination> fastest;     // fastest first
  std::optional<RankedCombination> baseline;  // empty if it has no prediction
  std::vector<plan::Values> variables;
  std::vector<std::string> left_out;           // swept variables none of whose values can be better
  std::size_t combinations = 0;                // of the values, including the baseline
  std::size_t alike = 0;                       // with the step of another one, because a setting has no effect
  std::map<std::string, std::size_t> refused;  // number of combinations by reason
  std::size_t predicted = 0;
  std::size_t close = 0;  // other predicted combinations that cannot be told apart from the fastest
};

/// The most combinations that are predicted.
inline constexpr std::size_t most_combinations = 16384;

/// Predicts the combinations of the values that a plan's cases give to variables, and ranks those that fit in memory by
/// step time, per token if the batches differ. `say` receives progress. Throws Error if the backend does not predict,
/// if nothing can be predicted, or if there are more than `limit`.
Best find_best(const plan::Plan& plan, std::size_t wanted, std::size_t limit = most_combinations,
               const std::function<void(const std::string&)>& say = {});

/// The subject of the plan, the size of a step, and the peak and memory that it is compared with: a line each.
std::vector<std::string> head_lines(const plan::Plan& plan);
/// Contents: the predictions, if there are any; the cases that run, with memory and traffic; why others do not;
/// warnings; head_lines(); published steps like the baseline. `predicted`: from predict_cases().
report::Document plan_document(const plan::Plan& plan, const std::vector<PredictedCase>& predicted);
/// The number of blocks by kind, the effect that `rounds` rounds can detect, and the size of the result file.
report::Section schedule_section(const plan::Plan& plan, int rounds);
/// The fastest combinations, and the number of others by outcome.
report::Section best_section(const plan::Plan& plan, const Best& best);
/// FLOP, bytes and least time of each operation of a case. The plan must have hardware.
report::Section budget_section(const plan::Plan& plan, const plan::PlannedCase& planned);

/// Adds the reliability of a prediction to its JSON; `of_change`: also the error of changes.
void put_trust(const sim::Trust& trust, bool of_change, report::Json& out);

/// `plan FILE.h5 --hardware NAME`: the predicted step times of a result on other hardware.
int plan_upgrade(const PlanOptions& options, std::ostream& out);

/// Step seconds by the name of the case.
struct KnownSteps {
  std::map<std::string, double> seconds;
  bool is_stated = false;  // by the user; a time budget that they exceed is then an error
  std::string source;      // "if every case has an MFU of 40 % and …"
};
/// Step times from the MFU that every case is assumed to have, as typed. Throws Error if it is not a valid MFU, or if a
/// case has no FLOP or no peak.
KnownSteps assumed_steps(const plan::Plan& plan, const std::string& assume_mfu);
/// Names the option that supplies the step times of a plan with FLOP: "an MFU (--assume-mfu 40%)".
std::string source_of_time(const plan::Plan& plan);

struct PlannedTime {
  int rounds = 0;                  // rounds within the time budget; all, if there is no budget or no times are known
  std::vector<std::string> lines;  // their duration, with GPU hours and cost if known
};
/// The duration of the sweep if the baseline's step time is known. Throws Error if the step times are stated by the
/// user and the time budget allows too few rounds for any verdict.
PlannedTime planned_time(const plan::Plan& plan, const KnownSteps& known);

}  // namespace harness::cli
