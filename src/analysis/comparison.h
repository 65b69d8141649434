#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "analysis/differences.h"
#include "analysis/runs.h"

namespace harness::analysis {

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
  std::vector<std::string> not_aligned;            // a sentence each
  std::vector<MachineDifference> machines_differ;  // how_machines_differ()
  std::string baselines_differ;                    // "threads is 1 and 2"; "" if the compared baselines are one case
};

/// Cases are aligned by their settings: of one side's cases and the other's, those with equal values in all variables
/// that both files know, first among those with the same variable and value. Within a side the first run decides which
/// cases there are. `baselines_anyway`: baseline with baseline, and control with control, if their settings differ.
/// Throws Error if a run is on one side twice: it would count as two.
Comparison compare_sides(std::span<const ComparedFile> first, std::span<const ComparedFile> second,
                         bool baselines_anyway = false);

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

/// The outcome of the gate over all cases, the worst last. `disturbed`: the machines of the two sides differ, so that
/// it is not known whether what was measured is slower.
enum class GateOutcome : std::uint8_t { passes, disturbed, fails };
/// Throws Error for a prediction, which proves nothing.
GateOutcome judge_gate(const Gate& gate, const Comparison& comparison);
/// What comes of times that fail the gate or not: they are not judged where the machines differ and a case is slower,
/// may be slower (A was the slower machine), or is to be proven not to be.
GateOutcome judge_gate(const Gate& gate, bool times_fail, std::span<const MachineDifference> machines_differ);

}  // namespace harness::analysis
