#include <algorithm>
#include <cmath>
#include <limits>
#include <numbers>

#include "analysis/statistics.h"

namespace harness {
namespace {

double normal_density(double z) {
  return std::exp(-z * z / 2) / std::sqrt(2 * std::numbers::pi);
}

// z with P(Z > z) = tail, by bisection.
double normal_upper_quantile(double tail) {
  double low = 0, high = 40;
  for (int i = 0; i < 100; ++i) {
    const double middle = (low + high) / 2;
    (std::erfc(middle / std::numbers::sqrt2) / 2 > tail ? low : high) = middle;
  }
  return low;
}

// Variance of a standard normal value winsorised at its share `tail` on both sides (Wilcox, "Introduction to Robust
// Estimation and Hypothesis Testing", section 3.3).
double winsorised_variance(double tail) {
  if (tail <= 0) return 1;
  const double z = normal_upper_quantile(tail);
  return 1 - 2 * tail - 2 * z * normal_density(z) + 2 * tail * z * z;
}

}  // namespace

double resolvable_effect(int rounds, int comparisons, double deviation, double smallest_effect, double confidence) {
  const int trimmed = static_cast<int>(std::floor(0.2 * rounds + 1e-9));
  const int kept = rounds - 2 * trimmed;
  if (kept < 2) return std::numeric_limits<double>::infinity();
  const double tail = static_cast<double>(trimmed) / rounds;
  const double standard_error =
      deviation * std::sqrt(winsorised_variance(tail)) / ((1 - 2 * tail) * std::sqrt(static_cast<double>(rounds)));
  const double alpha = (1 - confidence) / std::max(comparisons, 1);
  const double quantiles = student_t_quantile(1 - alpha / 2, kept - 1) + student_t_quantile(0.8, kept - 1);
  return std::expm1(std::log1p(smallest_effect) + quantiles * standard_error);
}

}  // namespace harness
