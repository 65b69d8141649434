#include "method_page.h"

#include <algorithm>
#include <cmath>
#include <numbers>

#include "store/result_file.h"
#include "support/paths.h"

namespace harness::method {
namespace {

// The regularised incomplete beta function, by Simpson's rule over the angle: x = sin².
double beta_share(double x, double a, double b) {
  const auto integral = [&](double end) {
    constexpr int n = 2000;
    const double h = end / n;
    const auto at = [&](double angle) {
      return std::pow(std::sin(angle), 2 * a - 1) * std::pow(std::cos(angle), 2 * b - 1);
    };
    double sum = at(0) + at(end);
    for (int i = 1; i < n; ++i) sum += (i % 2 == 1 ? 4 : 2) * at(i * h);
    return sum * h / 3;
  };
  return integral(std::asin(std::sqrt(x))) / integral(std::numbers::pi / 2);
}

}  // namespace

const store::Result& example() {
  static const store::Result result =
      store::read_result(test::source_dir() + "/results/example.h5", {.rank_seconds = true, .timeline = true});
  return result;
}

double median(std::vector<double> values) {
  std::ranges::sort(values);
  const std::size_t n = values.size();
  return n % 2 == 1 ? values[n / 2] : (values[n / 2 - 1] + values[n / 2]) / 2;
}

std::map<std::size_t, double> block_medians(const store::Result& result) {
  std::map<std::size_t, double> medians;
  for (std::size_t i = 0; i < result.blocks.size(); ++i) {
    if (result.blocks[i].status != store::BlockStatus::ok) continue;
    const auto& steps = result.step_seconds[i];
    medians[i] = median({steps.begin() + result.warmup_steps, steps.end()});
  }
  return medians;
}

double step_time(const store::Result& result, std::int32_t case_index) {
  std::vector<double> of_case;
  for (const auto& [block, seconds] : block_medians(result)) {
    if (result.blocks[block].case_index == case_index) of_case.push_back(seconds);
  }
  return median(of_case);
}

PageInterval t_interval(double center, double error, double degrees, double alpha) {
  const double half = student_t(1 - alpha / 2, degrees) * error;
  return {center, center - half, center + half, error, degrees};
}

analysis::Verdict verdict(const PageInterval& interval, double e) {
  const double least = std::log(1 + e);
  if (interval.low > least) return analysis::Verdict::slower;
  if (interval.high < -least) return analysis::Verdict::faster;
  return interval.low > -least && interval.high < least ? analysis::Verdict::same : analysis::Verdict::unresolved;
}

Trimmed trimmed(std::vector<double> values) {
  std::ranges::sort(values);
  const int n = static_cast<int>(values.size()), g = n / 5, h = n - 2 * g;
  double mean = 0, winsorised_mean = 0, squares = 0;
  for (int i = g; i < n - g; ++i) mean += values[i] / h;
  for (int i = 0; i < g; ++i) {
    values[i] = values[g];
    values[n - 1 - i] = values[n - 1 - g];
  }
  for (const double w : values) winsorised_mean += w / n;
  for (const double w : values) squares += std::pow(w - winsorised_mean, 2);
  return {n, h, mean, squares / (h * (h - 1.0))};
}

double student_t(double probability, double degrees) {
  double low = 0, high = 100;
  for (int i = 0; i < 45; ++i) {
    const double t = (low + high) / 2;
    (1 - t_tails(t, degrees) / 2 < probability ? low : high) = t;
  }
  return low;
}

double t_tails(double t, double degrees) {
  return beta_share(degrees / (degrees + t * t), degrees / 2, 0.5);
}

double f_tail(double f, double numerator, double denominator) {
  return beta_share(denominator / (denominator + numerator * f), denominator / 2, numerator / 2);
}

double binomial_tail(int n, int k, double q) {
  double sum = 0;
  for (int x = k; x <= n; ++x) {
    sum += std::exp(std::lgamma(n + 1) - std::lgamma(x + 1) - std::lgamma(n - x + 1) + x * std::log(q) +
                    (n - x) * std::log1p(-q));
  }
  return sum;
}

}  // namespace harness::method
