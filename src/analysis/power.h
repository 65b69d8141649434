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

/// The same for pairs within rounds, whose log ratios scatter with standard deviation `pair_deviation`.
double resolvable_effect_of_pairs(int rounds, int comparisons, double pair_deviation, double smallest_effect,
                                  double confidence);

/// The fewest rounds beyond the present ones that bring the half-width of a Yuen interval below `distance` if centre
/// and scatter stay what they are now. At most max_rounds, which stands for "not with this noise".
int rounds_to_reach(double distance, const ConfidenceInterval& now, double alpha);
inline constexpr int max_rounds = 1000;

}  // namespace harness::analysis
