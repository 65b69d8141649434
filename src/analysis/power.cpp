#include "analysis/power.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "analysis/distributions.h"
#include "analysis/level_estimator.h"
#include "analysis/paired_estimator.h"

namespace harness::analysis {
namespace {

// How many standard errors an effect must clear the threshold by, to be found four times in five.
double standard_errors_needed(double alpha, double degrees) {
  const double quantile = student_t_quantile(1 - alpha / 2, degrees);
  double low = 0, high = 10 * quantile;
  for (int i = 0; i < 60; ++i) {
    const double middle = (low + high) / 2;
    (noncentral_t_upper_tail(quantile, degrees, middle) < 0.8 ? low : high) = middle;
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

double distance_to_threshold(const ConfidenceInterval& interval, double smallest_effect) {
  return std::abs(std::abs(interval.center) - std::log1p(smallest_effect));
}

int rounds_to_reach(double distance, const ConfidenceInterval& now, double alpha) {
  const double scatter = now.standard_error * std::sqrt(now.n);
  const auto reached = [&](int rounds) {
    return student_t_quantile(1 - alpha / 2, rounds - 1) * scatter / std::sqrt(rounds) < distance;
  };
  int low = now.n, high = max_rounds;  // low does not reach it; high does, or is the answer anyway
  while (high - low > 1) {
    const int middle = (low + high) / 2;
    (reached(middle) ? high : low) = middle;
  }
  return high;
}

}  // namespace harness::analysis
