#pragma once

#include <span>
#include <vector>

#include "analysis/estimator.h"

namespace harness::analysis {

// Estimators that compare each case with the baseline of its round, so that whatever a round's blocks share (other
// jobs, temperature, clocks) cancels.

/// The pairs of a case with the baseline: the blocks of both in the rounds in which both finished in one session, in
/// order of rounds.
struct Pairs {
  std::vector<double> first, second;  // seconds: the baseline's, the case's
};
Pairs pair_blocks(const SweepBlocks& sweep, std::int32_t case_index);

/// Trimmed mean and Yuen's interval of the pairs' log ratios.
std::vector<Estimate> estimate_trimmed_pairs(const SweepBlocks& sweep, std::span<const Question> questions);

/// Median and sign interval of the pairs' log ratios.
std::vector<Estimate> estimate_median_pairs(const SweepBlocks& sweep, std::span<const Question> questions);

}  // namespace harness::analysis
