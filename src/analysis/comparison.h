#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "analysis/summary.h"
#include "analysis/verdict.h"
#include "store/result.h"

namespace harness::analysis {

// Questions about several result files: did two sides measure the same, what do runs of one configuration prove
// together, does a change do elsewhere what it did here, and when did a series change.

/// A result file as it takes part in a comparison. Nothing is owned.
struct ComparedFile {
  std::string label;  // what tables call it
  const store::Result* result = nullptr;
  const Summary* summary = nullptr;
};

/// Throws Error if a run is there twice: it would count as two.
void refuse_copies(std::span<const ComparedFile> files);
/// The strictest confidence that any of the files declares: what is said of all of them must satisfy each.
double strictest_confidence(std::span<const ComparedFile> files);
std::vector<std::string> labels_of(std::span<const ComparedFile> files);
/// Whether a file holds a prediction: a step in virtual time has no scatter to be judged by.
bool any_predicted(std::span<const ComparedFile> files);

/// A variable that two files know and that two of their cases set differently, with the values as printed.
struct SettingDifference {
  std::string variable, first, second;
};
/// Between a case of one file and a case of another, in the order of the first file's variables. What only one of them
/// knows is no difference.
std::vector<SettingDifference> setting_differences(const store::Result& first, const store::ResultCase& first_case,
                                                   const store::Result& second, const store::ResultCase& second_case);
/// "threads is 1 and 2, precision is fp32 and bf16"; "" if there are none.
std::string settings_in_words(const std::vector<SettingDifference>& differences);

/// Cases of two files that are one case.
struct AlignedPair {
  const store::ResultCase* first = nullptr;
  const store::ResultCase* second = nullptr;
  bool same = true;  // false: two baselines with different settings
};
/// Pairs of cases that are each other's counterpart, in the first file's order. `baselines_anyway`: baseline with
/// baseline, and control with control, whatever their settings.
std::vector<AlignedPair> align(const store::Result& first, const store::Result& second, bool baselines_anyway = false);

/// A case as one or more runs measured it. Its values are medians of the runs' values.
struct MeasuredCase {
  std::vector<double> run_seconds;    // per run that measured it: the median over blocks of the block median
  std::vector<double> block_seconds;  // of all runs
  double step_seconds = std::numeric_limits<double>::quiet_NaN();
  double tokens_per_second = std::numeric_limits<double>::quiet_NaN();
  std::optional<double> mfu;  // where all runs have one
};
/// `in_runs`: the case in each of the runs, nullptr where a run does not have it.
MeasuredCase measured_case(std::span<const ComparedFile> runs, std::span<const store::ResultCase* const> in_runs);

/// A ratio of step times with its interval and what decide() makes of it.
struct Change {
  double ratio = std::numeric_limits<double>::quiet_NaN();
  double low = std::numeric_limits<double>::quiet_NaN(), high = std::numeric_limits<double>::quiet_NaN();
  int n = 0;  // values that it rests on
  Judgement judgement;
};
Change change_of(const ConfidenceInterval& log_ratio, double smallest_effect, const Evidence& evidence = {});

/// Fewer runs give a number without an interval.
inline constexpr std::size_t runs_for_an_interval = 3;

/// Something that differs between result files and that explains, or forbids, a comparison of their times.
struct Difference {
  std::string group;                // "program", "identity", "machine", "environment", "configuration", …
  std::string name;                 // "onednn"
  std::vector<std::string> values;  // one per file, in their order
};
/// The value in a file that has nothing of the name.
inline constexpr const char* absent = "absent";

/// All differences but the times themselves: versions, libraries, devices, hosts, ranks, environment, configuration
/// (with its --set), clocks, peak, how much was measured.
std::vector<Difference> find_differences(std::span<const ComparedFile> files);

/// Why the times of these files cannot be compared at all, a sentence each; empty if they can. `same_ranks`: whether
/// the numbers of ranks must be equal, which they need not be where only effects are compared.
std::vector<std::string> why_incomparable(std::span<const ComparedFile> files, bool same_ranks = true);

/// Why the verdicts about these files are worth nothing, a sentence each: a control that moved, a partial file.
std::vector<std::string> why_unreliable(std::span<const ComparedFile> files);

/// A case of both sides. The change is the second side's time over the first's (per token, if the steps hold different
/// numbers of tokens); its interval is between runs or, without `between_runs` of the comparison, from the scatter
/// within runs.
struct CaseComparison : Change {
  std::string name;  // of the first side; "A = B" where the two sides name equal settings differently
  store::CaseRole role = store::CaseRole::change;
  MeasuredCase first, second;
  bool per_token = false;
  bool impossible = false;  // on both sides

  bool measured_on_both() const { return !first.run_seconds.empty() && !second.run_seconds.empty(); }
};

/// Two sides of one or more runs each, case by case.
struct Comparison {
  std::vector<std::string> first, second;  // the files' labels
  bool between_runs = false;               // three runs or more on both sides: the interval is that of the runs
  bool same_run = false;                   // a run is on both sides
  bool predicted = false;                  // a run is: then there are no intervals and no verdicts
  int comparisons = 0;                     // the family that the intervals hold for together
  double confidence = 0;                   // of all intervals together: the strictest that a file declares
  double smallest_effect = 0.01;           // the first file's
  std::vector<CaseComparison> cases;
  std::vector<std::string> not_aligned;  // a sentence each
  std::string baselines_differ;          // "threads is 1 and 2"; "" if the compared baselines are one case
};

/// Cases are aligned by their settings: of one side's cases and the other's, those with equal values in all variables
/// that both files know, first among those with the same variable and value. Within a side the first run decides which
/// cases there are. `baselines_anyway`: baseline with baseline, and control with control, if their settings differ.
/// Throws Error if a run is on one side twice: it would count as two.
Comparison compare_sides(std::span<const ComparedFile> first, std::span<const ComparedFile> second,
                         bool baselines_anyway = false);

/// The condition of `compare --fail-on`, which every case of both sides must meet: its whole interval does not lie
/// above the share. What is not proven passes.
struct Gate {
  std::optional<double> share;  // 0.02 is 2 %; without one, the smallest effect of the comparison
};

/// Reads "slower", "slower:5" or "slower:5%". Throws Error that says what is allowed.
Gate parse_gate(const std::string& text);

/// Whether a case does not meet it. Throws Error for a prediction, which proves nothing.
bool fails_gate(const Gate& gate, const Comparison& comparison);

// Effects over several runs, each against the baseline of its own run, with the run as the unit: docs/method.md.

/// One run's result for a case that it planned.
struct RunOfCase {
  std::size_t file = 0;              // of the list that was pooled
  const CaseSummary* row = nullptr;  // in that file's summary
  /// The case's time to that of the run's own baseline; NaN where this run does not count (NCCL did something else, or
  /// the time is beyond the limit of the hardware), and for the baseline.
  double ratio = std::numeric_limits<double>::quiet_NaN();
};

/// `n` of the change counts runs: of the baseline all that measured it, else those with a ratio.
struct PooledCase : Change {
  const store::ResultCase* planned = nullptr;  // in the first file that has it
  std::string name;
  store::CaseRole role = store::CaseRole::change;
  MeasuredCase measured;
  std::vector<RunOfCase> runs;  // in the files' order
  /// Whether the runs differ more than the scatter of their own rounds explains: the intervals of two do not meet, and
  /// their effects lie apart by more than the smallest effect.
  bool runs_differ = false;
  std::vector<std::string> remarks;  // why a run failed or does not count
};

struct Pool {
  int comparisons = 0;            // the family that the intervals hold for together
  double confidence = 0.95;       // of all intervals together: the strictest that a file declares
  double smallest_effect = 0.01;  // the first file's
  std::vector<PooledCase> cases;  // in the order of the first file, then what only later files have
  bool unreliable = false;        // the control moved over the runs
};

/// Pools three files or more. Throws Error, in one line, if they are not repeats of each other (exit code 3) or if a
/// run is there twice. Repeats agree in workload, backend, model, number of ranks, the settings of the baseline and
/// those of each case that two of them share. Machine, software, seed, rounds and what a configuration leaves out may
/// differ: find_differences() lists them. The files and their summaries must outlive the pool.
Pool pool_runs(std::span<const ComparedFile> files);

/// 0: fine; 4: a case failed in a file, a file's control moved, or that of the pool did.
int exit_code(const Pool& pool, std::span<const ComparedFile> files);

/// Whether a change does on one cluster what it did on another.
enum class Reproduced : std::uint8_t {
  yes,        // faster on both, slower on both, or the same on both
  no,         // moved on one, proven not to move on the other
  opposite,   // faster on one, slower on the other
  undecided,  // no verdict on one side
};
const char* name_of(Reproduced reproduced);

struct ChangeReproduction {
  std::string name;      // variable=value
  Change first, second;  // n: rounds
  Reproduced reproduced = Reproduced::undecided;
};

struct Reproduction {
  std::string first, second;                           // labels
  double first_confidence = 0, second_confidence = 0;  // of a file's intervals together
  std::vector<ChangeReproduction> changes = {};
  std::vector<std::string> only_in_one = {};  // a sentence each
};

/// Changes that both files made, by variable and value; the baselines need not be alike, since each effect is against
/// its own.
Reproduction reproduce(const ComparedFile& first, const ComparedFile& second);

// Did a case's step time change over a series of runs, and between which two? The run is the unit: one number per run
// and case, the median over blocks. Of each case the place k of one change is where T is largest, of the logarithms:
//
//   T = max over k of  k (n - k) / n * (mean of the first k - mean of the others)^2 / sum of squares
//
// Its p-value is by permutations of the runs, for all cases together (docs/method.md has the sources). Of several
// changes only the largest is named.

/// With seven runs, p is above 5 % wherever the change is.
inline constexpr std::size_t min_history_runs = 8;

struct ChangePoint {
  std::size_t before = 0, run = 0;  // the last run that measured the case before the change, and the first after it
  double ratio = 1;                 // geometric mean of the step times after it over that before it
  double p = 1;
};

struct CaseHistory {
  std::string name;  // of the newest file that counts
  /// Per run; NaN where it was not measured. Per unit of work, in terms of the newest step, where batches differ.
  std::vector<double> seconds;
  std::optional<ChangePoint> largest;  // proven or not; nothing below min_history_runs
  /// faster, slower or same (proven, but below the smallest effect); unresolved: no change is proven; none: too few
  /// runs
  Verdict verdict = Verdict::none;
};

struct History {
  std::vector<ComparedFile> files;  // oldest first
  double smallest_effect = 0.01;    // of the newest
  double confidence = 0;            // that a named change is one: the strictest that a file declares
  std::vector<CaseHistory> cases;   // of the newest file, in its order

  /// The proven change that moved its case most; nullptr if there is none.
  const CaseHistory* clearest() const;
};

/// Files in any order; they are sorted by when they were created. Cases are those of the newest, found in the others by
/// their settings as align() does. Throws Error for no file, and if a run is there twice.
History find_history(std::vector<ComparedFile> files);

/// The place of the largest T of a series of two logarithms or more, and T.
struct LargestShift {
  std::size_t first_after = 0;
  double statistic = 0;
};
LargestShift largest_shift(std::span<const double> logs);

}  // namespace harness::analysis
