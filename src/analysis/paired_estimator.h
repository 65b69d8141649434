#pragma once

#include <span>
#include <vector>

#include "analysis/estimator.h"

namespace harness::analysis {

// Comparing each case with the baseline of its round, so that whatever a round's blocks share (other jobs, temperature,
// clocks) cancels.

/// Pairs below which there is no interval. Two have a t quantile of 12.7 and three of 4.3, so such
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

/// Mean and t interval of the log ratios to the geometric mean of the baselines that finished in the round; of the
/// control to the baseline. Fewer than least_pairs give the centre alone.
SweepEstimate estimate_mean_pairs(const SweepBlocks& sweep, std::span<const Question> questions);

}  // namespace harness::analysis
