#include "analysis/statistics.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "analysis/distributions.h"
#include "base/median.h"

namespace harness::analysis {
namespace {

constexpr double nan = std::numeric_limits<double>::quiet_NaN();
constexpr double infinite = std::numeric_limits<double>::infinity();

std::vector<double> sorted(std::span<const double> values) {
  std::vector<double> copy(values.begin(), values.end());
  std::ranges::sort(copy);
  return copy;
}

struct TrimmedMean {
  int n = 0, kept = 0;
  double mean = nan;      // of the values that trimming leaves
  double variance = nan;  // of that mean: the winsorised sum of squares / (h (h - 1))
};

TrimmedMean trimmed_mean(std::span<const double> values, double share) {
  const std::size_t n = values.size(), cut = trimmed_count(n, share);
  TrimmedMean out;
  out.n = static_cast<int>(n);
  out.kept = static_cast<int>(n - 2 * cut);
  if (out.kept < 1) return out;
  const std::vector<double> in_order = sorted(values);
  const auto winsorised = [&](std::size_t i) { return in_order[std::clamp(i, cut, n - 1 - cut)]; };
  double sum = 0, winsorised_sum = 0;
  for (std::size_t i = 0; i < n; ++i) {
    winsorised_sum += winsorised(i);
    if (i >= cut && i < n - cut) sum += in_order[i];
  }
  out.mean = sum / out.kept;
  if (out.kept < 2) return out;
  const double winsorised_mean = winsorised_sum / static_cast<double>(n);
  double squares = 0;  // (n - 1) × the winsorised variance
  for (std::size_t i = 0; i < n; ++i) squares += std::pow(winsorised(i) - winsorised_mean, 2);
  out.variance = squares / (static_cast<double>(out.kept) * (out.kept - 1));
  return out;
}

// Student's t interval.
ConfidenceInterval around(double center, double standard_error, double degrees, double alpha, int n) {
  const double half_width = student_t_quantile(1 - alpha / 2, degrees) * standard_error;
  return {center, center - half_width, center + half_width, n, standard_error, degrees};
}

}  // namespace

double family_alpha(int comparisons, double confidence) {
  return (1 - confidence) / std::max(comparisons, 1);
}

double standard_deviation(std::span<const double> values) {
  if (values.size() < 2) return nan;
  double mean = 0;
  for (const double value : values) mean += value;
  mean /= static_cast<double>(values.size());
  double squares = 0;
  for (const double value : values) squares += (value - mean) * (value - mean);
  return std::sqrt(squares / static_cast<double>(values.size() - 1));
}

std::size_t trimmed_count(std::size_t n, double share) {
  return static_cast<std::size_t>(std::floor(share * static_cast<double>(n) + 1e-9));
}

ConfidenceInterval yuen_interval(std::span<const double> values, double alpha, double share) {
  const TrimmedMean of = trimmed_mean(values, share);
  if (of.kept < 2) return {.n = of.n};
  return around(of.mean, std::sqrt(of.variance), of.kept - 1, alpha, of.n);
}

ConfidenceInterval yuen_welch_interval(std::span<const double> first, std::span<const double> second, double alpha,
                                       double share) {
  const TrimmedMean a = trimmed_mean(first, share), b = trimmed_mean(second, share);
  const double center = b.mean - a.mean, variance = a.variance + b.variance;
  const int n = a.n + b.n;
  if (!std::isfinite(variance)) return {.center = center, .n = n};
  // Samples without any scatter, as of a file compared with itself at one round, have no width.
  if (!(variance > 0)) return {center, center, center, n, 0};
  const double degrees =
      variance * variance / (a.variance * a.variance / (a.kept - 1) + b.variance * b.variance / (b.kept - 1));
  return around(center, std::sqrt(variance), degrees, alpha, n);
}

}  // namespace harness::analysis
