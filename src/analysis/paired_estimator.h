#pragma once

#include <span>
#include <vector>

#include "analysis/estimator.h"

namespace harness::analysis {

// Estimators that compare each case with the baseline of its round, so that whatever a round's blocks share (other
// jobs, temperature, clocks) cancels.

/// Pairs below which no estimator of pairs gives an interval. Two have a t quantile of 12.7 and three of 4.3, so such
/// intervals are as good as their assumption that log ratios scatter normally, and chance alone makes some very narrow:
/// two pairs that happen to agree would prove anything. With four, the interval begins to know the scatter.
inline constexpr int least_pairs = 4;

/// The pairs of a case with the baseline: the blocks of both in the rounds in which both finished in one session, in
/// order of rounds.
struct Pairs {
  std::vector<double> first, second;  // seconds: the baseline's, the case's
};
Pairs pair_blocks(const SweepBlocks& sweep, std::int32_t case_index);
/// One for each pair: the second to the first.
std::vector<double> log_ratios_of(const Pairs& pairs);

/// How far the centre of a log ratio is from the nearer of the two thresholds: the half width that would settle it.
double distance_to_threshold(const ConfidenceInterval& interval, double smallest_effect);

/// Trimmed mean and Yuen's interval of the pairs' log ratios; of fewer than least_pairs the centre alone, as below.
SweepEstimate estimate_trimmed_pairs(const SweepBlocks& sweep, std::span<const Question> questions);

/// Median and sign interval of the pairs' log ratios.
SweepEstimate estimate_median_pairs(const SweepBlocks& sweep, std::span<const Question> questions);

/// Mean and t interval of the log ratios to the geometric mean of the baselines that finished in the round; of the
/// control to the baseline.
SweepEstimate estimate_mean_pairs(const SweepBlocks& sweep, std::span<const Question> questions);

}  // namespace harness::analysis
