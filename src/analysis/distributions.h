#pragma once

namespace harness::analysis {

// Quantiles and tails of the distributions that intervals and verdicts rest on.

/// The quantile of Student's t distribution, for any real degrees of freedom > 0. Throws Error unless
/// 0 < probability < 1.
double student_t_quantile(double probability, double degrees);

/// P(F > f) for Fisher's F distribution with these degrees of freedom, both > 0.
double f_upper_tail(double f, double numerator_degrees, double denominator_degrees);

/// z with P(Z > z) = tail for a standard normal Z, 0 < tail <= 1/2.
double normal_upper_quantile(double tail);

/// The density of the standard normal distribution.
double normal_density(double z);

/// P(X >= k) for X ~ Binomial(n, p), 0 < p < 1.
double binomial_upper_tail(int n, int k, double p);

/// The largest k with P(X < k) <= tail for X ~ Binomial(n, 1/2), at most n / 2.
int fair_coin_lower_rank(int n, double tail);

}  // namespace harness::analysis
