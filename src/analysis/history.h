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
// and case, the median over blocks.
//
// For each case the best place k of one change among its n runs is where the likelihood-ratio statistic of a shift of
// the mean of normal values is largest (Hinkley, Biometrika 57, 1970; Worsley, JASA 74, 1979), here of the logarithms
// and as a share of their whole scatter, between 0 and 1:
//
//   T = max over k of  k (n - k) / n * (mean of the first k - mean of the others)^2 / sum of squares
//
// Its p-value comes from permutations of the runs, which need no normal distribution, and holds for all cases together
// (Westfall and Young, "Resampling-Based Multiple Testing", 1993: the largest T of any case in each permutation; all
// cases of a run move together). With N random permutations p = (1 + as extreme ones) / (1 + N), which never claims
// more than it can (Phipson and Smyth, 2010). So the error of naming a change in any case where none was is at most
// 1 - confidence, provided that without a change the order of the runs says nothing. A slow drift breaks that too: it
// is found, and named as the step that fits it best. Of several changes only the largest is named.
//
// p cannot be below 2 / C(n, k). From seven runs it is above 5 % for every k, so eight is the least; a change must have
// lasted for two runs of ten, or for three of nine. One odd run is never a change below forty runs.

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
