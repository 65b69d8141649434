#pragma once

#include "analysis/statistics.h"

namespace harness::analysis {

// How many rounds a sweep needs.

/// The smallest effect that `rounds` rounds of the level model resolve with 80 % probability when a block is off the
/// machine's level by standard deviation `block_deviation` and `comparisons` are made, as a share of the step time. A
/// verdict must clear smallest_effect, so it is more than that. Infinite for fewer than least_pairs rounds, which give
/// no verdict.
double resolvable_effect(int rounds, int comparisons, double block_deviation, double smallest_effect,
                         double confidence);

/// How far the centre of a log ratio is from the nearer of the two thresholds: the half width that would settle it.
double distance_to_threshold(const ConfidenceInterval& interval, double smallest_effect);

/// The fewest rounds beyond the present ones that bring the half-width of a t interval below `distance` if centre
/// and scatter stay what they are now. At most max_rounds, which stands for "not with this noise".
int rounds_to_reach(double distance, const ConfidenceInterval& now, double alpha);
inline constexpr int max_rounds = 1000;

}  // namespace harness::analysis
