#include "analysis/power.h"

#include <cmath>
#include <limits>

#include "analysis/distributions.h"

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

}  // namespace

double resolvable_effect(int rounds, int comparisons, double deviation, double smallest_effect) {
  const int kept = rounds > 0 ? kept_of(rounds) : 0;
  if (kept < 2) return std::numeric_limits<double>::infinity();
  const int trimmed_from_each_end = (rounds - kept) / 2;
  const double tail = static_cast<double>(trimmed_from_each_end) / rounds;
  const double standard_error =
      deviation * std::sqrt(winsorised_variance(tail)) / ((1 - 2 * tail) * std::sqrt(static_cast<double>(rounds)));
  const double alpha = family_alpha(comparisons);
  const double quantiles = student_t_quantile(1 - alpha / 2, kept - 1) + student_t_quantile(0.8, kept - 1);
  return std::expm1(std::log1p(smallest_effect) + quantiles * standard_error);
}

// Yuen's standard error falls with the root of the h values that trimming leaves.
int rounds_to_reach(double distance, const ConfidenceInterval& now, double alpha) {
  const double scatter = now.standard_error * std::sqrt(kept_of(now.n));
  const auto half_width = [&](int rounds) {
    const int kept = kept_of(rounds);
    return student_t_quantile(1 - alpha / 2, kept - 1) * scatter / std::sqrt(kept);
  };
  int low = now.n, high = max_rounds;  // low does not reach it; high does, or is the answer anyway
  while (high - low > 1) {
    const int middle = (low + high) / 2;
    (half_width(middle) < distance ? high : low) = middle;
  }
  return high;
}

}  // namespace harness::analysis
