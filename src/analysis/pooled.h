#pragma once

#include <cstddef>
#include <functional>
#include <limits>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "analysis/differences.h"
#include "analysis/verdict.h"

namespace harness::analysis {

// Several runs of one configuration as one result, with the run as the unit. A run gives one number per case: the log
// ratio of the case's time to that of the run's own baseline, by the interval that its file declares. Over n runs that
// have it, the case has Student's t interval of the mean of these,
//
//   mean  ±  t(1 - alpha / 2; n - 1) · s / sqrt(n)
//
// s being their standard deviation. It includes what the rounds of one run cannot show: that another allocation, node
// or day differs. alpha is the error of the sweep divided by the number of changes that could run in some file
// (Bonferroni); the control has its own, as in one sweep. Two runs have a ratio and no interval.

/// One run's result for a case that it measured.
struct RunOfCase {
  std::size_t file = 0;              // of the list that was pooled
  const CaseSummary* row = nullptr;  // in that file's summary
  /// The case's time to that of the run's own baseline; NaN where this run does not count (log_ratio_of()), and for the
  /// baseline.
  double ratio = std::numeric_limits<double>::quiet_NaN();
};

struct PooledCase {
  std::string name;
  store::CaseRole role = store::CaseRole::change;
  std::vector<RunOfCase> runs;  // those that measured it, in the files' order
  int n = 0;                    // runs that count: for the baseline all that measured it, else those with a ratio
  double ratio = std::numeric_limits<double>::quiet_NaN();
  double low = std::numeric_limits<double>::quiet_NaN(), high = std::numeric_limits<double>::quiet_NaN();
  Judgement judgement;
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

/// Pools two or more files. Throws Error, in one line, if they are no repeats of each other or if a run is there twice.
/// Repeats agree in workload, backend, model, number of ranks, the settings of the baseline and those of each case that
/// two of them share, and none has changes that no other has without sharing any. Machine, software, seed, rounds and
/// what a configuration leaves out may differ: find_differences() lists them. The files and their summaries must
/// outlive the pool.
Pool pool_runs(std::span<const ComparedFile> files);

/// The median over the runs that measured a case of what `value` finds in each; nothing where it finds nothing in one.
std::optional<double> median_over_runs(
    const PooledCase& pooled, std::span<const ComparedFile> files,
    const std::function<std::optional<double>(const store::Result&, const CaseSummary&)>& value);

/// 0: fine; 4: a case failed in a file, a file's control moved, or that of the pool did.
int exit_code(const Pool& pool, std::span<const ComparedFile> files);

}  // namespace harness::analysis
