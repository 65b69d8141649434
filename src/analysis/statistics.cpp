#include "analysis/statistics.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "base/error.h"

namespace harness {
namespace {

constexpr double nan = std::numeric_limits<double>::quiet_NaN();
constexpr int most_rounds = 1000;  // an estimate beyond it says only: not with this noise

int cut(std::size_t n, double trim) {
  return static_cast<int>(std::floor(trim * static_cast<double>(n) + 1e-9));
}

// How many rounds bring the half-width below `distance` if centre and scatter stay what they are. Yuen's standard error
// falls with the root of the h values that trimming leaves.
int rounds_to_reach(double distance, const TrimmedInterval& now, double alpha, double trim) {
  const int kept_now = now.n - 2 * cut(static_cast<std::size_t>(now.n), trim);
  const double scatter = now.standard_error * std::sqrt(kept_now);
  const auto half_width = [&](int n) {
    const int kept = n - 2 * cut(static_cast<std::size_t>(n), trim);
    return student_t_quantile(1 - alpha / 2, kept - 1) * scatter / std::sqrt(kept);
  };
  int low = now.n, high = most_rounds;  // low does not reach it; high does, or is the answer anyway
  while (high - low > 1) {
    const int middle = (low + high) / 2;
    (half_width(middle) < distance ? high : low) = middle;
  }
  return high;
}

// How many values from each end the interval may leave out: the largest k with P(Binomial(n, 1/2) < k) <= alpha / 2.
int sign_rank(int n, double alpha) {
  double mass = std::exp2(-n), below = 0;  // P(= k), P(< k)
  int k = 0;
  while (k < n / 2 && below + mass <= alpha / 2) {
    below += mass;
    mass *= static_cast<double>(n - k) / (k + 1);
    ++k;
  }
  return k;
}

}  // namespace

const char* name_of(Verdict verdict) {
  switch (verdict) {
    case Verdict::faster:
      return "faster";
    case Verdict::slower:
      return "slower";
    case Verdict::same:
      return "same";
    case Verdict::unresolved:
      return "unresolved";
    case Verdict::not_honoured:
      return "not honoured";
    case Verdict::none:
      break;
  }
  return "none";
}

double median(std::span<const double> values) {
  if (values.empty()) return nan;
  std::vector<double> sorted(values.begin(), values.end());
  const auto middle = sorted.begin() + static_cast<std::ptrdiff_t>(sorted.size() / 2);
  std::nth_element(sorted.begin(), middle, sorted.end());
  if (sorted.size() % 2 == 1) return *middle;
  return (*std::max_element(sorted.begin(), middle) + *middle) / 2;
}

TrimmedInterval yuen_interval(std::span<const double> differences, double alpha, double trim) {
  const std::size_t n = differences.size();
  const int g = cut(n, trim);
  const int kept = static_cast<int>(n) - 2 * g;
  TrimmedInterval interval{nan, nan, nan, static_cast<int>(n), nan};
  if (kept < 2) return interval;
  std::vector<double> sorted(differences.begin(), differences.end());
  std::sort(sorted.begin(), sorted.end());
  const double lowest = sorted[static_cast<std::size_t>(g)];
  const double highest = sorted[n - 1 - static_cast<std::size_t>(g)];
  double trimmed_sum = 0, winsorised_sum = 0;
  for (std::size_t i = 0; i < n; ++i) {
    const double value = std::clamp(sorted[i], lowest, highest);
    winsorised_sum += value;
    if (i >= static_cast<std::size_t>(g) && i < n - static_cast<std::size_t>(g)) trimmed_sum += value;
  }
  interval.center = trimmed_sum / kept;
  const double winsorised_mean = winsorised_sum / static_cast<double>(n);
  double squares = 0;  // (n - 1) × the winsorised variance
  for (const double value : sorted) squares += std::pow(std::clamp(value, lowest, highest) - winsorised_mean, 2);
  interval.standard_error = std::sqrt(squares / (static_cast<double>(kept) * (kept - 1)));
  const double half = student_t_quantile(1 - alpha / 2, kept - 1) * interval.standard_error;
  interval.low = interval.center - half;
  interval.high = interval.center + half;
  return interval;
}

TrimmedInterval sign_interval(std::span<const double> differences, double alpha) {
  const auto n = static_cast<int>(differences.size());
  TrimmedInterval interval{nan, nan, nan, n, nan};
  if (n < 2) return interval;
  std::vector<double> sorted(differences.begin(), differences.end());
  std::sort(sorted.begin(), sorted.end());
  constexpr double infinite = std::numeric_limits<double>::infinity();
  const int k = sign_rank(n, alpha);
  interval.center = median(differences);
  interval.low = k > 0 ? sorted[static_cast<std::size_t>(k - 1)] : -infinite;
  interval.high = k > 0 ? sorted[static_cast<std::size_t>(n - k)] : infinite;
  return interval;
}

Effect compare_paired(std::span<const double> baseline, std::span<const double> changed, int comparisons,
                      double smallest_effect, double confidence, IntervalKind kind) {
  if (baseline.size() != changed.size()) {
    fail("compare_paired: {} baseline blocks cannot be paired with {}", baseline.size(), changed.size());
  }
  std::vector<double> log_ratios(baseline.size());
  for (std::size_t i = 0; i < baseline.size(); ++i) log_ratios[i] = std::log(changed[i] / baseline[i]);
  const double trim = 0.2;
  const double alpha = (1 - confidence) / std::max(comparisons, 1);
  const TrimmedInterval yuen = yuen_interval(log_ratios, alpha, trim);
  const TrimmedInterval interval = kind == IntervalKind::sign ? sign_interval(log_ratios, alpha) : yuen;
  Effect effect;
  effect.rounds = static_cast<int>(log_ratios.size());
  if (!std::isfinite(interval.center)) {  // fewer than two pairs: a number perhaps, never a verdict
    effect.ratio = log_ratios.size() == 1 ? std::exp(log_ratios[0]) : nan;
    effect.low = effect.high = nan;
    return effect;
  }
  effect.ratio = std::exp(interval.center);
  effect.low = std::exp(interval.low);
  effect.high = std::exp(interval.high);
  const double threshold = std::log1p(smallest_effect);
  if (interval.low > threshold) {
    effect.verdict = Verdict::slower;
  } else if (interval.high < -threshold) {
    effect.verdict = Verdict::faster;
  } else if (interval.low > -threshold && interval.high < threshold) {
    effect.verdict = Verdict::same;
  } else {
    effect.verdict = Verdict::unresolved;
    effect.rounds_needed = rounds_to_reach(std::abs(std::abs(yuen.center) - threshold), yuen, alpha, trim);
    if (kind == IntervalKind::sign) {  // fewer cannot settle anything, whatever they say
      effect.rounds_needed = std::max(effect.rounds_needed, static_cast<int>(std::ceil(1 - std::log2(alpha))));
    }
  }
  return effect;
}

}  // namespace harness
