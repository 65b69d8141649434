#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "analysis/differences.h"
#include "analysis/runs.h"

namespace harness::analysis {

// Did a case's step time change over a series of runs, and between which two? The run is the unit: one number per run
// and case, the median over blocks. Of each case the place k of one change is where the likelihood-ratio statistic of a
// shift of the mean is largest (Hinkley, Biometrika 57, 1970; Worsley, JASA 74, 1979), of the logarithms:
//
//   T = max over k of  k (n - k) / n * (mean of the first k - mean of the others)^2 / sum of squares
//
// Its p-value is by permutations of the runs, for all cases together (Westfall and Young, "Resampling-Based Multiple
// Testing", 1993; p = (1 + as extreme ones) / (1 + permutations), Phipson and Smyth, 2010). It holds if the order of
// the runs says nothing without a change: a slow drift is named as the step that fits it best. Of several changes only
// the largest is named. docs/method.md says which changes so many runs can show.

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
  /// Where a change is proven: how the machines of the runs before it, A, and after it, B, differ.
  std::vector<MachineDifference> machines_differ;
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

/// The place of the largest T of a series of logarithms, and T. Nothing for fewer than two values.
struct LargestShift {
  std::size_t first_after = 0;
  double statistic = 0;
};
std::optional<LargestShift> largest_shift(std::span<const double> logs);

}  // namespace harness::analysis
