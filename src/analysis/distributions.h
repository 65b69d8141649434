#pragma once

namespace harness::analysis {

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
