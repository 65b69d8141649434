#pragma once

#include <cstddef>
#include <limits>
#include <span>

namespace harness::analysis {

// Location, scatter and intervals of samples: pure arithmetic, no I/O. docs/method.md has the references.

/// The share that a trimmed mean leaves out at either end.
inline constexpr double trim_share = 0.2;
/// A median absolute deviation times this is the standard deviation, if the sample is of a normal distribution.
inline constexpr double mad_to_deviation = 1.4826;

/// 1 - `confidence`, shared out over the comparisons that are made together (Bonferroni). The confidence is always a
/// file's or a configuration's (measure.confidence): there is no default that could stand in for it.
double family_alpha(int comparisons, double confidence);

/// The standard deviation, with n - 1; NaN with fewer than two values.
double standard_deviation(std::span<const double> values);

/// How many of `n` values trimming leaves out at either end.
std::size_t trimmed_count(std::size_t n, double share = trim_share);

/// An interval of a location, two-sided at confidence 1 - alpha. NaN where the sample is too small.
struct ConfidenceInterval {
  double center = std::numeric_limits<double>::quiet_NaN();
  double low = std::numeric_limits<double>::quiet_NaN(), high = std::numeric_limits<double>::quiet_NaN();
  int n = 0;  // values that it rests on
  double standard_error = std::numeric_limits<double>::quiet_NaN();
  double degrees = std::numeric_limits<double>::quiet_NaN();  // of freedom, of the standard error
};

/// Yuen's interval of the trimmed mean of one sample, such as paired differences: winsorised variance, Student's t with
/// h - 1 degrees of freedom for the h values that trimming leaves. All NaN with h < 2.
ConfidenceInterval yuen_interval(std::span<const double> values, double alpha, double share = trim_share);

/// The interval of (trimmed mean of `second`) - (trimmed mean of `first`) for two independent samples: Yuen's test for
/// unequal variances (Biometrika 61, 1974). Where trimming leaves out nothing on either side it is Welch's t interval.
/// n counts both samples. NaN but for the centre when a side has fewer than two values, all NaN when a side has none.
ConfidenceInterval yuen_welch_interval(std::span<const double> first, std::span<const double> second, double alpha,
                                       double share = trim_share);

}  // namespace harness::analysis
