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

// What `plan` computes and how it is laid out. `sweep` and `read` predict with it, too.

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

struct RankedCombination {
  std::vector<std::pair<std::string, std::string>> settings;  // that differ from the baseline's: variable, value
  plan::PlannedCase planned;
  PredictedCase predicted;
  double distance = 0;         // share by which its step is longer than the fastest's, per token where these differ
  bool is_told_apart = false;  // the distance is larger than the error of predicted changes
};

/// Outcomes of the combinations of the values that a configuration tries.
struct Best {
  std::vector<RankedCombination> fastest;     // the fastest first
  std::optional<RankedCombination> baseline;  // none where it has no prediction
  std::vector<plan::Values> variables;
  std::vector<std::string> left_out;           // variables that are swept, but of which no value can be better
  std::size_t combinations = 0;                // of the values, the baseline among them
  std::size_t alike = 0;                       // set what has no effect: another one's step
  std::map<std::string, std::size_t> refused;  // how many, by why
  std::size_t predicted = 0;
  std::size_t close = 0;  // other predicted ones that are not told apart from the fastest
};

/// As many combinations are predicted at most.
inline constexpr std::size_t most_combinations = 16384;

/// Predicts the combinations of the values that the cases of a plan give to variables, and ranks those that fit in
/// memory by step time, per token where the batches differ. `say` hears how far it is. Throws Error if nothing
/// predicts, if nothing can be predicted, or if there are more than `limit`.
Best find_best(const plan::Plan& plan, std::size_t wanted, std::size_t limit = most_combinations,
               const std::function<void(const std::string&)>& say = {});

/// Says what is planned, how large a step is, and the peak and the memory that it is held against: a line each.
std::vector<std::string> head_lines(const plan::Plan& plan);
/// Which cases run, on what memory and with what traffic; why the others do not; warnings; head_lines(); published
/// steps like the baseline. `predicted`: as predict_cases() gives it.
report::Document plan_document(const plan::Plan& plan, const std::vector<PredictedCase>& predicted);
/// How many blocks of what kind, the effect that `rounds` rounds can detect, and the size of the result file.
report::Section schedule_section(const plan::Plan& plan, int rounds);
/// The fastest combinations, and how many of the others there are, by what became of them.
report::Section best_section(const plan::Plan& plan, const Best& best);
/// The FLOP, bytes and least time of each operation of a case; the plan has hardware.
report::Section budget_section(const plan::Plan& plan, const plan::PlannedCase& planned);

/// Puts how far a prediction may be relied on into its JSON; `of_change`: also the error of changes.
void put_trust(const sim::Trust& trust, bool of_change, report::Json& out);

/// `plan FILE.h5 --hardware NAME`: what the steps of a result would take on other hardware.
int plan_upgrade(const PlanOptions& options, std::ostream& out);

/// Seconds of a step by the name of its case.
struct KnownSteps {
  std::map<std::string, double> seconds;
  bool is_stated = false;  // by a person, so a time budget that they overrun is a mistake
  std::string source;      // "if every case has an MFU of 40 % and …"
};
/// Steps of the MFU that every case is taken to have, as typed. Throws Error if it is no such number, or where a case
/// has no FLOP or no peak.
KnownSteps assumed_steps(const plan::Plan& plan, const std::string& assume_mfu);
/// Names what to give for the steps of a plan that have FLOP: "an MFU (--assume-mfu 40%)".
std::string source_of_time(const plan::Plan& plan);

struct PlannedTime {
  int rounds = 0;                  // that the time budget allows; all, where there is none or no times are known
  std::vector<std::string> lines;  // how long these take, in GPU hours and money too where those are known
};
/// How long the sweep takes where the baseline's step is known. Throws Error if the time budget allows too few rounds
/// for any verdict, and the steps are stated.
PlannedTime planned_time(const plan::Plan& plan, const KnownSteps& known);

}  // namespace harness::cli
