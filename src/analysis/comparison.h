#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "analysis/summary.h"
#include "analysis/verdict.h"
#include "store/result.h"

namespace harness::analysis {

// Comparisons of several result files: do two sides differ, what do repeated runs of one configuration prove together,
// does a change reproduce elsewhere, and when did a series change.

/// A result file in a comparison. Owns nothing.
struct ComparedFile {
  std::string label;  // name in tables
  const store::Result* result = nullptr;
  const Summary* summary = nullptr;
};

/// Throws Error if a run occurs twice, because it would count as two.
void refuse_copies(std::span<const ComparedFile> files);
/// Returns the highest confidence that a file declares: a statement about all files must satisfy each.
double strictest_confidence(std::span<const ComparedFile> files);
std::vector<std::string> labels_of(std::span<const ComparedFile> files);
/// Whether any file holds a prediction: a step in virtual time has no scatter to judge it by.
bool any_predicted(std::span<const ComparedFile> files);

/// A variable that two files know and that two of their cases set differently, with the values as printed.
struct SettingDifference {
  std::string variable, first, second;
};
/// Compares a case of one file with a case of another, in the order of the first file's variables. A variable that only
/// one file knows is no difference.
std::vector<SettingDifference> setting_differences(const store::Result& first, const store::ResultCase& first_case,
                                                   const store::Result& second, const store::ResultCase& second_case);
/// "threads is 1 and 2, precision is fp32 and bf16"; "" if there are none.
std::string settings_in_words(const std::vector<SettingDifference>& differences);

/// Two cases, one per file, that count as the same case.
struct AlignedPair {
  const store::ResultCase* first = nullptr;
  const store::ResultCase* second = nullptr;
  bool same = true;  // false: two baselines with different settings
};
/// Pairs cases that are each other's counterpart, in the first file's order. `baselines_anyway`: pairs baseline with
/// baseline, and control with control, whatever their settings.
std::vector<AlignedPair> align(const store::Result& first, const store::Result& second, bool baselines_anyway = false);

/// A case as measured by one or more runs. Its values are medians of the runs' values.
struct MeasuredCase {
  std::vector<double> run_seconds;    // per run that measured it: the median over blocks of the block median
  std::vector<double> block_seconds;  // blocks of all runs
  double step_seconds = store::not_known, tokens_per_second = store::not_known;
  std::optional<double> mfu;  // only if all runs have one
};
/// `in_runs`: the case in each of the runs, nullptr where a run does not have it.
MeasuredCase measured_case(std::span<const ComparedFile> runs, std::span<const store::ResultCase* const> in_runs);

/// A ratio of step times with its interval and the judgement from decide().
struct Change {
  double ratio = store::not_known, low = store::not_known, high = store::not_known;
  int n = 0;  // values behind it
  Judgement judgement;
};
Change change_of(const ConfidenceInterval& log_ratio, double smallest_effect, const Evidence& evidence = {});

/// With fewer runs there is a ratio but no interval.
inline constexpr std::size_t runs_for_an_interval = 3;

/// A difference between result files that explains, or forbids, a comparison of their times.
struct Difference {
  std::string group;                // "program", "identity", "machine", "environment", "configuration", …
  std::string name;                 // "onednn"
  std::vector<std::string> values;  // one per file, in their order
};
/// The value for a file that lacks the name.
inline constexpr const char* absent = "absent";

/// Returns all differences except the times themselves: versions, libraries, devices, hosts, ranks, environment,
/// configuration (with its --set), clocks, peak, how much was measured.
std::vector<Difference> find_differences(std::span<const ComparedFile> files);

/// Returns why the times of these files cannot be compared at all, a sentence each; empty if they can. `same_ranks`:
/// the numbers of ranks must be equal, which is not needed where only effects are compared.
std::vector<std::string> why_incomparable(std::span<const ComparedFile> files, bool same_ranks = true);

/// Returns why verdicts about these files are unreliable, a sentence each: a control that moved, a partial file.
std::vector<std::string> why_unreliable(std::span<const ComparedFile> files);

/// A case on both sides. The change is the second side's time over the first's (per token, if the steps hold different
/// numbers of tokens). Its interval is between runs or, if the comparison's `between_runs` is false, from the scatter
/// within runs.
struct CaseComparison : Change {
  std::string name;  // the first side's name; "A = B" if the two sides name equal settings differently
  store::CaseRole role = store::CaseRole::change;
  MeasuredCase first, second;
  bool per_token = false;
  bool impossible = false;  // on both sides

  bool measured_on_both() const { return !first.run_seconds.empty() && !second.run_seconds.empty(); }
};

/// Two sides of one or more runs each, case by case.
struct Comparison {
  std::vector<std::string> first, second;  // the files' labels
  bool between_runs = false;               // both sides have at least three runs: the interval is between runs
  bool same_run = false;                   // a run is on both sides
  bool predicted = false;                  // a run is predicted: no intervals and no verdicts
  int comparisons = 0;                     // size of the family that the intervals hold for jointly
  double confidence = 0;                   // joint confidence of all intervals: the highest that a file declares
  double smallest_effect = 0.01;           // the first file's; with a prediction, the largest of all files
  std::vector<CaseComparison> cases;
  std::vector<std::string> not_aligned;  // a sentence each
  std::string baselines_differ;          // "threads is 1 and 2"; "" if the compared baselines are one case
};

/// Aligns cases by their settings: two match if all variables that both files know are equal, preferably with the same
/// variable and value changed. The first run of a side decides which cases the side has. `baselines_anyway`: also pairs
/// baseline with baseline, and control with control, if their settings differ. Throws Error if a run is on one side
/// twice, because it would count as two.
Comparison compare_sides(std::span<const ComparedFile> first, std::span<const ComparedFile> second,
                         bool baselines_anyway = false);

/// The condition of `compare --fail-on` for every case that both sides measured: its interval must not lie wholly above
/// the share. An unproven slowdown passes.
struct Gate {
  std::optional<double> share;  // 0.02 is 2 %; without one, the smallest effect of the comparison
};

/// Parses "slower", "slower:5" or "slower:5%". Throws Error that says what is allowed.
Gate parse_gate(const std::string& text);

/// Whether any case fails the gate. Throws Error for a prediction, which proves nothing.
bool fails_gate(const Gate& gate, const Comparison& comparison);

// Effects over several runs, each against the baseline of its own run, with the run as the unit: docs/method.md.

/// One run's result for a case that it planned.
struct RunOfCase {
  std::size_t file = 0;              // index in the pooled list
  const CaseSummary* row = nullptr;  // in that file's summary
  /// The case's time over that of the run's own baseline. NaN for the baseline and where this run does not count: it
  /// has no pair of blocks, NCCL did something else, the case trains differently, or its time is beyond a hardware
  /// limit.
  double ratio = store::not_known;
};

/// `n` of the change counts runs: for the baseline all that measured it, else those with a ratio.
struct PooledCase : Change {
  const store::ResultCase* planned = nullptr;  // in the first file that has it
  std::string name;
  store::CaseRole role = store::CaseRole::change;
  MeasuredCase measured;
  std::vector<RunOfCase> runs;  // in the files' order
  /// Whether the runs differ by more than the scatter of their own rounds explains: the intervals of two do not
  /// overlap, and their effects are further apart than the smallest effect.
  bool runs_differ = false;
  std::vector<std::string> remarks;  // why a run failed or does not count
};

struct Pool {
  int comparisons = 0;            // size of the family that the intervals hold for jointly
  double confidence = 0.95;       // joint confidence of all intervals: the highest that a file declares
  double smallest_effect = 0.01;  // the first file's
  std::vector<PooledCase> cases;  // in the first file's order, then cases that only later files have
  bool unreliable = false;        // the control moved over the runs
};

/// Pools three files or more. Throws Error, in one line, if they are not repeats of each other (exit code 3) or if a
/// run occurs twice. Repeats agree in workload, backend, model, number of ranks, the settings of the baseline and those
/// of each case that two of them share. Machine, software, seed, rounds and the cases that a configuration leaves out
/// may differ: find_differences() lists them. The files and their summaries must outlive the pool.
Pool pool_runs(std::span<const ComparedFile> files);

/// Whether a change has the same effect on two clusters.
enum class Reproduced : std::uint8_t {
  yes,        // faster, slower or the same on both
  no,         // faster or slower on one, the same on the other
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
  double first_confidence = 0, second_confidence = 0;  // joint confidence of a file's intervals
  std::vector<ChangeReproduction> changes = {};
  std::vector<std::string> only_in_one = {};  // a sentence each
};

/// Compares the changes that both files made, by variable, value and size of an operation. The baselines may differ,
/// since each effect is against its own.
Reproduction reproduce(const ComparedFile& first, const ComparedFile& second);

// Whether a case's step time changed over a series of runs, and between which two. The run is the unit: one number per
// run and case, the median over blocks. One change is located per case, at the k that maximises T over the logarithms:
//
//   T = max over k of  k (n - k) / n * (mean of the first k - mean of the others)^2 / sum of squares
//
// Its p-value comes from permutations of the runs, for all cases jointly (docs/method.md has the sources). If there are
// several changes, only the largest is named.

/// With seven runs, p is above 5 % wherever the change lies.
inline constexpr std::size_t min_history_runs = 8;

struct ChangePoint {
  std::size_t before = 0, run = 0;  // last run that measured the case before the change, and first after it
  double ratio = 1;                 // geometric mean of the step times after the change over that before it
  double p = 1;
};

struct CaseHistory {
  std::string name;  // name in the newest file that counts
  /// Per run; NaN where not measured. Where batches differ, the time is scaled to the newest run's tokens per step.
  std::vector<double> seconds;
  std::optional<ChangePoint> largest;  // proven or not; nothing below min_history_runs
  /// faster, slower or same (proven, but below the smallest effect); unresolved: no change proven; none: too few runs
  Verdict verdict = Verdict::none;
};

struct History {
  std::vector<ComparedFile> files;  // oldest first
  double smallest_effect = 0.01;    // the newest file's
  double confidence = 0;            // that a named change is real: the highest that a file declares
  std::vector<CaseHistory> cases;   // cases of the newest file, in its order

  /// Returns the case whose proven change is largest; nullptr if there is none.
  const CaseHistory* clearest() const;
};

/// Takes files in any order and sorts them by creation time. Cases are those of the newest file, matched to the others'
/// by their settings as in align(). Throws Error for no file, and if a run occurs twice.
History find_history(std::vector<ComparedFile> files);

/// The position of the largest T in a series of at least two logarithms, and T.
struct LargestShift {
  std::size_t first_after = 0;
  double statistic = 0;
};
LargestShift largest_shift(std::span<const double> logs);

}  // namespace harness::analysis
