#include "analysis/power.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numbers>

#include "analysis/distributions.h"
#include "analysis/level_estimator.h"
#include "analysis/paired_estimator.h"

namespace harness::analysis {
namespace {

int kept_of(int rounds) {
  const auto n = static_cast<unsigned>(rounds);
  return static_cast<int>(n - 2 * trimmed_count(n));
}

// Variance of a standard normal value winsorised at its share `tail` on both sides (Wilcox, "Introduction to Robust
// Estimation and Hypothesis Testing", section 3.3).
double winsorised_variance(double tail) {
  if (tail <= 0) return 1;
  const double z = normal_upper_quantile(tail);
  return 1 - 2 * tail - 2 * z * normal_density(z) + 2 * tail * z * z;
}

// P(an interval of half width q s lies above 0) where its centre is normal with mean `shift` and standard deviation 1,
// and degrees × s² has a chi-square distribution: the tail of the noncentral t, by Simpson's rule over s.
double found_share(double shift, double quantile, double degrees) {
  constexpr int intervals = 400;
  const double reach = 9 / std::sqrt(2 * degrees), from = std::max(0.0, 1 - reach), to = 1 + reach;
  const double log_scale = std::log(2) + degrees / 2 * std::log(degrees / 2) - std::lgamma(degrees / 2);
  double sum = 0;
  for (int i = 0; i <= intervals; ++i) {
    const double s = std::max(from + (to - from) * i / intervals, 1e-12);
    const double density = std::exp(log_scale + (degrees - 1) * std::log(s) - degrees * s * s / 2);
    const double above = std::erfc((quantile * s - shift) / std::numbers::sqrt2) / 2;
    const bool end = i == 0 || i == intervals;
    const double inner = i % 2 == 1 ? 4 : 2;
    sum += (end ? 1 : inner) * density * above;
  }
  return sum * (to - from) / intervals / 3;
}

// How many standard errors an effect must clear the threshold by, to be found four times in five.
double standard_errors_needed(double alpha, double degrees) {
  const double quantile = student_t_quantile(1 - alpha / 2, degrees);
  double low = 0, high = 10 * quantile;
  for (int i = 0; i < 60; ++i) {
    const double middle = (low + high) / 2;
    (found_share(middle, quantile, degrees) < 0.8 ? low : high) = middle;
  }
  return high;
}

}  // namespace

double resolvable_effect(int rounds, int comparisons, double block_deviation, double smallest_effect,
                         double confidence) {
  if (rounds < least_pairs) return std::numeric_limits<double>::infinity();
  const double n = rounds;
  const double of_case = 1 / n, of_reference = 1 / (2 * n);  // variances, of one block's
  const double both = of_case + of_reference;
  double standard_error = block_deviation * std::sqrt(both), degrees = n - 1;
  if (rounds >= least_level_rounds) {
    // The degrees of freedom that level_interval has with complete rounds.
    degrees = both * both / (of_case * of_case / (2 * n - 2) + of_reference * of_reference / (3 * n - 2));
    // Variances are moved up only, by a share of their own scatter, which is sqrt(2 / (n - 1)). Simulated for 1 to 22
    // cases and 5 to 24 rounds: without this, half widths are 2 to 7 % too small.
    standard_error *= 1 + 0.13 / std::sqrt(n - 1);
  }
  const double needed = standard_errors_needed(family_alpha(comparisons, confidence), degrees);
  return std::expm1(std::log1p(smallest_effect) + needed * standard_error);
}

double resolvable_effect_of_pairs(int rounds, int comparisons, double pair_deviation, double smallest_effect,
                                  double confidence) {
  if (rounds < least_pairs) return std::numeric_limits<double>::infinity();
  const int kept = kept_of(rounds);
  const int trimmed_from_each_end = (rounds - kept) / 2;
  const double tail = static_cast<double>(trimmed_from_each_end) / rounds;
  const double standard_error =
      pair_deviation * std::sqrt(winsorised_variance(tail)) / ((1 - 2 * tail) * std::sqrt(static_cast<double>(rounds)));
  const double needed = standard_errors_needed(family_alpha(comparisons, confidence), kept - 1);
  return std::expm1(std::log1p(smallest_effect) + needed * standard_error);
}

// Yuen's standard error falls with the root of the h values that trimming leaves.
int rounds_to_reach(double distance, const ConfidenceInterval& now, double alpha) {
  const double scatter = now.standard_error * std::sqrt(kept_of(now.n));
  const auto reached = [&](int rounds) {
    const int kept = kept_of(rounds);
    return student_t_quantile(1 - alpha / 2, kept - 1) * scatter / std::sqrt(kept) < distance;
  };
  int low = now.n, high = max_rounds;  // low does not reach it; high does, or is the answer anyway
  while (high - low > 1) {
    const int middle = (low + high) / 2;
    (reached(middle) ? high : low) = middle;
  }
  // Trimming leaves 10 of 14 rounds, 9 of 15 and 10 of 16: two fewer may do as well.
  return high - 2 > now.n && reached(high - 2) ? high - 2 : high;
}

}  // namespace harness::analysis
