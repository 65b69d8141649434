#pragma once

#include <cstdint>
#include <functional>
#include <limits>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "analysis/breakdown.h"
#include "analysis/differences.h"
#include "analysis/verdict.h"

namespace harness::analysis {

/// A part of a case's step by its name, in seconds.
struct StepPart {
  std::string name;
  double seconds = 0;
};
/// Finds the parts of a case's step; empty if the file does not say.
using PartsOf = std::function<std::vector<StepPart>(const store::Result& result, int case_index)>;
/// By the split that the profiled step left for every rank: computation, exposed communication, idle. Means over ranks.
std::vector<StepPart> parts_of_splits(const store::Result& result, int case_index);
/// The parts that are there, mean over ranks, by their names for people.
std::vector<StepPart> parts_of_breakdown(const CaseBreakdown& breakdown);

struct ComparisonOptions {
  PartsOf parts_of = parts_of_splits;
  bool baselines_anyway = false;  // baseline with baseline, and control with control, if their settings differ
};

/// A case as one side has it. The side's value is the median of its runs' values.
struct CaseSide {
  std::vector<double> run_seconds;    // per run that measured it: the median over blocks of the block median
  std::vector<double> block_seconds;  // of all runs
  double step_seconds = std::numeric_limits<double>::quiet_NaN();
  double tokens_per_second = std::numeric_limits<double>::quiet_NaN();
  std::optional<double> mfu;
  std::vector<StepPart> parts;  // medians over runs
};

struct CaseComparison {
  std::string name;              // of the first side; "A = B" where the two sides name equal settings differently
  std::int32_t first_index = 0;  // the case in the first side's first file
  store::CaseRole role = store::CaseRole::change;
  CaseSide first, second;
  /// They compare the second side's time with the first's (per token, if the steps hold different numbers of tokens).
  /// The interval is between runs or, without `between_runs` of the comparison, from the scatter within runs.
  Judgement judgement;
  double ratio = std::numeric_limits<double>::quiet_NaN();
  double low = std::numeric_limits<double>::quiet_NaN(), high = std::numeric_limits<double>::quiet_NaN();
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
  /// Why one side may be slower though the same was measured (how_machines_differ), a sentence each without a full
  /// stop.
  std::vector<std::string> machines_differ;
  std::string baselines_differ;  // "threads is 1 and 2"; "" if the compared baselines are one case
};

/// Cases are aligned by their settings: of one side's cases and the other's, those with equal values in all variables
/// that both files know, first among those with the same variable and value. Within a side the first run decides which
/// cases there are. Throws Error if a run is on one side twice: it would count as two.
Comparison compare_sides(std::span<const ComparedFile> first, std::span<const ComparedFile> second,
                         const ComparisonOptions& options = {});

/// Why the verdicts about these files are worth nothing, a sentence each: a control that moved, a partial file.
std::vector<std::string> why_unreliable(std::span<const ComparedFile> files);

/// The condition of `compare --fail-on`, which every case of both sides must meet.
struct Gate {
  enum class FailsOn : std::uint8_t {
    slower,             // the whole interval lies above the share: what is not proven passes
    not_proven_within,  // the interval reaches above the share, or there is none: what is not proven fails
  };
  FailsOn fails_on = FailsOn::slower;
  std::optional<double> share;  // 0.02 is 2 %; without one, the smallest effect of the comparison
};

/// Reads "slower", "slower:5", "slower:5%" or "not-proven-within:2%". Throws Error that says what is allowed.
Gate parse_gate(const std::string& text);

bool fails(const Gate& gate, const Comparison& comparison, const CaseComparison& row);
/// The outcome of the gate over all comparisons. `disturbed`: a case fails it, but only where the machines of the two
/// sides differ, so that it is not known whether what was measured is slower.
enum class GateOutcome : std::uint8_t { passes, disturbed, fails };
GateOutcome judge_gate(const Gate& gate, std::span<const Comparison> comparisons);

}  // namespace harness::analysis
