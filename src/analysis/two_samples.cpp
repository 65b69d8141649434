#include "analysis/two_samples.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

namespace harness {
namespace {

constexpr double nan = std::numeric_limits<double>::quiet_NaN();

// One sample's share of Yuen's statistic.
struct Trimmed {
  int n = 0, kept = 0;
  double mean = nan;      // of the values that trimming leaves
  double variance = nan;  // of that mean: the winsorised sum of squares / (h (h - 1))
};

Trimmed trimmed(std::span<const double> values, double trim) {
  Trimmed out;
  const std::size_t n = values.size();
  const auto g = static_cast<std::size_t>(std::floor(trim * static_cast<double>(n) + 1e-9));
  out.n = static_cast<int>(n);
  out.kept = static_cast<int>(n - 2 * g);
  if (out.kept < 1) return out;
  std::vector<double> sorted(values.begin(), values.end());
  std::sort(sorted.begin(), sorted.end());
  double sum = 0, winsorised_sum = 0;
  const auto winsorised = [&](std::size_t i) { return sorted[std::clamp(i, g, n - 1 - g)]; };
  for (std::size_t i = 0; i < n; ++i) {
    winsorised_sum += winsorised(i);
    if (i >= g && i < n - g) sum += sorted[i];
  }
  out.mean = sum / out.kept;
  if (out.kept < 2) return out;
  const double winsorised_mean = winsorised_sum / static_cast<double>(n);
  double squares = 0;
  for (std::size_t i = 0; i < n; ++i) squares += std::pow(winsorised(i) - winsorised_mean, 2);
  out.variance = squares / (static_cast<double>(out.kept) * (out.kept - 1));
  return out;
}

}  // namespace

TrimmedInterval yuen_welch_interval(std::span<const double> first, std::span<const double> second, double alpha,
                                    double trim) {
  const Trimmed a = trimmed(first, trim), b = trimmed(second, trim);
  TrimmedInterval interval{b.mean - a.mean, nan, nan, a.n + b.n, nan};
  const double variance = a.variance + b.variance;
  if (!std::isfinite(variance)) return interval;
  interval.standard_error = std::sqrt(variance);
  double half = 0;  // samples without any scatter, as of one file compared with itself at one round, have no width
  if (variance > 0) {
    const double degrees =
        variance * variance / (a.variance * a.variance / (a.kept - 1) + b.variance * b.variance / (b.kept - 1));
    half = student_t_quantile(1 - alpha / 2, degrees) * interval.standard_error;
  }
  interval.low = interval.center - half;
  interval.high = interval.center + half;
  return interval;
}

Verdict verdict_of_interval(double log_low, double log_high, double smallest_effect) {
  if (!std::isfinite(log_low) || !std::isfinite(log_high)) return Verdict::none;
  const double threshold = std::log1p(smallest_effect);
  if (log_low > threshold) return Verdict::slower;
  if (log_high < -threshold) return Verdict::faster;
  return log_low > -threshold && log_high < threshold ? Verdict::same : Verdict::unresolved;
}

}  // namespace harness
