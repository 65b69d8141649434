#pragma once

#include <limits>
#include <span>

namespace harness::analysis {

// Location, scatter and intervals of samples: pure arithmetic, no I/O. docs/method.md has the references.

/// A median absolute deviation times this is the standard deviation, if the sample is of a normal distribution.
inline constexpr double mad_to_deviation = 1.4826;

/// 1 - `confidence`, shared out over the comparisons that are made together (Bonferroni). The confidence is always a
/// file's or a configuration's (measure.confidence): there is no default that could stand in for it.
double family_alpha(int comparisons, double confidence);

/// The standard deviation, with n - 1; NaN with fewer than two values.
double standard_deviation(std::span<const double> values);

/// An interval of a location, two-sided at confidence 1 - alpha. NaN where the sample is too small.
struct ConfidenceInterval {
  double center = std::numeric_limits<double>::quiet_NaN();
  double low = std::numeric_limits<double>::quiet_NaN(), high = std::numeric_limits<double>::quiet_NaN();
  int n = 0;  // values that it rests on
  double standard_error = std::numeric_limits<double>::quiet_NaN();
};

/// Student's t interval of the mean of one sample, such as paired differences. All NaN with fewer than two values.
ConfidenceInterval mean_interval(std::span<const double> values, double alpha);

/// The interval of (trimmed mean of `second`) - (trimmed mean of `first`) for two independent samples: Yuen's test for
/// unequal variances (Biometrika 61, 1974): winsorised variances, and a fifth of the values trimmed at either end. With
/// fewer than five values a side nothing is trimmed, and it is Welch's t interval. n counts both samples. NaN but for
/// the centre when a side has fewer than two values, all NaN when a side has none.
ConfidenceInterval yuen_welch_interval(std::span<const double> first, std::span<const double> second, double alpha);

// Quantiles and tails of the distributions that intervals and verdicts rest on, by Boost.Math.

/// The quantile of Student's t distribution, for any real degrees of freedom > 0. Throws Error unless
/// 0 < probability < 1.
double student_t_quantile(double probability, double degrees);

/// P(F > f) for Fisher's F distribution with these degrees of freedom, both > 0.
double f_upper_tail(double f, double numerator_degrees, double denominator_degrees);

/// P(T > t) for the noncentral t distribution: T = (Z + shift) / sqrt(V / degrees), Z standard normal, V chi-square.
double noncentral_t_upper_tail(double t, double degrees, double shift);

/// P(X >= k) for X ~ Binomial(n, p), 0 < p < 1.
double binomial_upper_tail(int n, int k, double p);

}  // namespace harness::analysis
