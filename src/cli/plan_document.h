#pragma once

#include <cstddef>
#include <functional>
#include <iosfwd>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "cli/predicted.h"
#include "cli/verbs.h"
#include "plan/combinations.h"
#include "plan/plan.h"
#include "report/document.h"
#include "report/json.h"

namespace harness::cli {

/// One of the fastest combinations.
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
  double combinations = 0;                     // of the values, the baseline among them
  bool all = true;                             // of them were looked at; else a search went from one to the next
  std::size_t alike = 0;                       // set what has no effect: another one's step
  std::map<std::string, std::size_t> refused;  // how many, by why
  std::size_t predicted = 0;
  std::size_t same_time = 0;  // to the picosecond that of one with fewer changes, which stands for it
  std::size_t close = 0;      // other predicted ones that are not told apart from the fastest
};

/// More combinations that can run than this are searched, not predicted one by one.
inline constexpr std::size_t most_predicted = 4096;

/// Predicts the combinations of the values that the cases of a plan give to variables, and ranks those that fit in
/// memory by step time, per token where the batches differ. Of up to `limit` that can run it predicts all. Of more it
/// looks at no more than `limit`: from the baseline and from each single change it goes on to a faster one that differs
/// in one value, until none is. What it ends with need not be the fastest of all. `say` hears how far it is. Throws
/// Error if nothing predicts, or if nothing can be predicted.
Best find_best(const plan::Plan& plan, std::size_t wanted, std::size_t limit = most_predicted,
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

/// Where the times of blocks come from, as typed; all "": from nowhere.
struct TimeOptions {
  std::string like;          // a result file
  std::string assume_mfu;    // "40%", of every case
  std::string assume_setup;  // "45 s", of every block
};

struct PlannedTime {
  int rounds = 0;                  // that the time budget allows; all, where there is none or no times are known
  std::vector<std::string> lines;  // how long these take, in GPU hours and money too where those are known
};
/// Throws Error if the result file tells nothing of this plan (another backend, workload, model or number of ranks), if
/// an assumption cannot be used, or if the time budget allows too few rounds for any verdict.
PlannedTime planned_time(const plan::Plan& plan, const TimeOptions& options);

/// What to give for the time of this plan's blocks: "an earlier result (--like RESULT.h5) or an MFU (--assume-mfu
/// 40%)".
std::string sources_of_time(const plan::Plan& plan);

/// Seconds of a step by the name of its case.
using StepTimes = std::map<std::string, double>;
/// How long a block and the sweep take if steps take what was predicted; nothing where that says nothing.
std::vector<std::string> expected_time(const plan::Plan& plan, const StepTimes& predicted);

}  // namespace harness::cli
