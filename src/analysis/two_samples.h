#pragma once

#include <span>

#include "analysis/statistics.h"

namespace harness {

/// The interval of (trimmed mean of `second`) - (trimmed mean of `first`) for two independent samples: Yuen's test for
/// unequal variances (Biometrika 61, 1974), two-sided at confidence 1 - alpha. Where floor(trim * n) is 0 on both sides
/// it is Welch's t interval. n counts both samples. NaN but for the centre when a side has fewer than two values, all
/// NaN when a side has none.
TrimmedInterval yuen_welch_interval(std::span<const double> first, std::span<const double> second, double alpha,
                                    double trim = 0.2);

/// The verdict on an interval of a log ratio of times: wholly beyond ± log(1 + e) is faster or slower, wholly within is
/// same, anything else unresolved; none for NaN.
Verdict verdict_of_interval(double log_low, double log_high, double smallest_effect);

}  // namespace harness
