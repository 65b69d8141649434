#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "analysis/runs.h"

namespace harness::analysis {

// Effects over several runs, each against the baseline of its own run, with the run as the unit: over the runs that
// have a case, it has Student's t interval of the mean of its log ratios. So it includes what the rounds of one run
// cannot show: that another allocation, node or day differs. The error is shared out over the changes that could run in
// some file (Bonferroni); the control has its own, as in one sweep.

/// One run's result for a case that it planned.
struct RunOfCase {
  std::size_t file = 0;              // of the list that was pooled
  const CaseSummary* row = nullptr;  // in that file's summary
  /// The case's time to that of the run's own baseline; NaN where this run does not count (log_ratio_of()), and for the
  /// baseline.
  double ratio = std::numeric_limits<double>::quiet_NaN();
};

/// `n` of the change counts runs: of the baseline all that measured it, else those with a ratio.
struct PooledCase : Change {
  const store::ResultCase* planned = nullptr;  // in the first file that has it
  std::string name;
  store::CaseRole role = store::CaseRole::change;
  MeasuredCase measured;
  std::vector<RunOfCase> runs;  // in the files' order
  /// Whether the runs differ more than the scatter of their own rounds explains (heterogeneity_p), at 5 % for all cases
  /// together, and by more than the smallest effect; and the probability of so much by chance, nothing if not tested.
  bool runs_differ = false;
  std::optional<double> runs_differ_p;
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
/// those of each case that two of them share, and none has changes that no other has without sharing any. Machine,
/// software, seed, rounds and what a configuration leaves out may differ: find_differences() lists them. The files and
/// their summaries must outlive the pool.
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
  Change first, second;  // n: rounds of one run, or runs
  Reproduced reproduced = Reproduced::undecided;
};

struct Reproduction {
  std::vector<std::string> first, second;              // labels
  double first_confidence = 0, second_confidence = 0;  // of a side's intervals together: the strictest of its files
  std::vector<ChangeReproduction> changes = {};
  std::vector<std::string> only_in_one = {};  // a sentence each
};

/// Changes that both sides made, by variable and value; the baselines need not be alike, since each effect is against
/// its own. A side of one run has that run's effects; a side of three or more is pooled (pool_runs). Throws Error for a
/// side of two, and as pool_runs() does.
Reproduction reproduce(std::span<const ComparedFile> first, std::span<const ComparedFile> second);

}  // namespace harness::analysis
