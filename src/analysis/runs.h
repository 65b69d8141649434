#pragma once

#include <cstddef>
#include <limits>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "analysis/breakdown.h"
#include "analysis/statistics.h"
#include "analysis/summary.h"
#include "analysis/verdict.h"
#include "store/result.h"

namespace harness::analysis {

/// A result file as it takes part in a comparison. Nothing is owned.
struct ComparedFile {
  std::string label;  // what tables call it
  const store::Result* result = nullptr;
  const Summary* summary = nullptr;
  std::span<const CaseBreakdown> breakdowns = {};  // of the profiled steps, where they were read
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

/// The case in `in` that has the settings of `wanted` in `from`; nullptr if there is none. Among several (the baseline
/// and its copy) the one with the same variable and value, and then the same name, is chosen. A control only matches a
/// control.
const store::ResultCase* counterpart(const store::Result& from, const store::ResultCase& wanted,
                                     const store::Result& in);

/// Cases of two files that are one case.
struct AlignedPair {
  const store::ResultCase* first = nullptr;
  const store::ResultCase* second = nullptr;
  bool same = true;  // false: two baselines with different settings
};
/// Pairs of cases that are each other's counterpart, in the first file's order. `baselines_anyway`: baseline with
/// baseline, and control with control, whatever their settings.
std::vector<AlignedPair> align(const store::Result& first, const store::Result& second, bool baselines_anyway = false);

/// A part of a case's step by its name, in seconds.
struct StepPart {
  std::string name;
  double seconds = 0;
};

/// A case as one or more runs measured it. Its values are medians of the runs' values.
struct MeasuredCase {
  std::vector<double> run_seconds;    // per run that measured it: the median over blocks of the block median
  std::vector<double> block_seconds;  // of all runs
  double step_seconds = std::numeric_limits<double>::quiet_NaN();
  double tokens_per_second = std::numeric_limits<double>::quiet_NaN();
  std::optional<double> mfu;    // where all runs have one
  std::vector<StepPart> parts;  // of the profiled step, mean over ranks; by the ranks' splits without a breakdown
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

/// Why one side of a comparison, A or B, may be slower though the same was measured.
struct MachineDifference {
  std::string sentence;         // without a full stop
  bool first_is_worse = false;  // A is the slower side, which can hide that what B measured is slower
};
/// The machine of one side was disturbed where the other's was not, or reaches a lower measured peak. Empty: nothing
/// says so.
std::vector<MachineDifference> how_machines_differ(std::span<const ComparedFile> first,
                                                   std::span<const ComparedFile> second);

}  // namespace harness::analysis
