#pragma once

#include "analysis/statistics.h"

namespace harness::analysis {

// How many rounds a sweep needs.

/// The smallest effect that `rounds` rounds resolve with 80 % probability when log ratios of blocks scatter with
/// standard deviation `deviation` and `comparisons` are made, as a share of the step time. A verdict must clear
/// smallest_effect, so it is more than that. Infinite for fewer than two rounds.
double resolvable_effect(int rounds, int comparisons, double deviation, double smallest_effect);

/// How many rounds bring the half-width of a Yuen interval below `distance` if centre and scatter stay what they are
/// now. At most max_rounds, which stands for "not with this noise".
int rounds_to_reach(double distance, const ConfidenceInterval& now, double alpha);
inline constexpr int max_rounds = 1000;

}  // namespace harness::analysis
