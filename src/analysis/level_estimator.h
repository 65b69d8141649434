#pragma once

#include <span>

#include "analysis/estimator.h"

namespace harness::analysis {

/// Rounds, and blocks of a case, below which the level model gives no interval.
inline constexpr int least_level_rounds = 5;

/// The level model (level_model.h) with its guards. The control's question, if it is asked, is answered first and
/// alone: the copy of the baseline against the baseline. Unless its verdict is faster or slower, both are the reference
/// of all other questions; else the baseline is, and LevelFindings::baseline_left says so. Where the case that ran
/// before matters (find_carry_over), the level is the mean of the round's other blocks; where a case drifts in a way of
/// its own (find_serial_correlation), all intervals are widened.
///
/// Fewer than least_level_rounds rounds or blocks of the reference are no ground for a level: estimate_mean_pairs then
/// answers. A case with fewer blocks than that gets a number without an interval.
SweepEstimate estimate_level(const SweepBlocks& sweep, std::span<const Question> questions);

}  // namespace harness::analysis
