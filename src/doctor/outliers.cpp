#include "doctor/outliers.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>

namespace harness::doctor {
namespace {

// Relative scatter that is expected before any is seen, and how many observations this expectation is worth. Two rates
// alone tell nothing of their scatter.
constexpr double expected_scatter = 0.015, worth = 4;
constexpr std::size_t smallest_fast_share = 32;

// The distance between two groups, in standard deviations, that is no accident. More rates can be cut in two at more
// places, but their scatter is better known; from ten on healthy ones hardly ever reach it.
double distance_that_counts(std::size_t rates) {
  return std::min(5.8, 3.8 + 0.2 * static_cast<double>(rates));
}

// How many of the ascending values are the slow group; nothing where all are one group. At least `fast` are not slow.
std::optional<std::size_t> slow_group(std::span<const double> logs, std::size_t fast) {
  const std::size_t n = logs.size();
  double sum = 0, squares = 0;
  for (const double x : logs) {
    sum += x - logs.back();
    squares += (x - logs.back()) * (x - logs.back());
  }
  double best = 0, slow_sum = 0, slow_squares = 0;
  std::size_t best_slow = 0;
  for (std::size_t slow = 1; slow + fast <= n; ++slow) {
    const double x = logs[slow - 1] - logs.back();
    slow_sum += x;
    slow_squares += x * x;
    const double slows = static_cast<double>(slow), fasts = static_cast<double>(n - slow);
    const double slow_mean = slow_sum / slows, fast_mean = (sum - slow_sum) / fasts;
    const double within = std::max(0.0, slow_squares - slows * slow_mean * slow_mean) +
                          std::max(0.0, squares - slow_squares - fasts * fast_mean * fast_mean);
    const double scatter =
        std::sqrt((worth * expected_scatter * expected_scatter + within) / (worth + static_cast<double>(n - 2)));
    const double distance = (fast_mean - slow_mean) / scatter;
    if (distance <= best) continue;
    best = distance;
    best_slow = slow;
  }
  return best >= distance_that_counts(n) ? std::optional(best_slow) : std::nullopt;
}

double upper_quartile(std::span<const double> ascending) {
  return ascending[(3 * (ascending.size() - 1) + 2) / 4];
}

}  // namespace

Likeness compare_rates(std::span<const double> rates, const Tolerance& tolerance) {
  std::vector<double> known;
  Likeness found;
  found.usual = std::numeric_limits<double>::quiet_NaN();
  for (std::size_t i = 0; i < rates.size(); ++i) {
    if (!std::isfinite(rates[i])) continue;
    if (known.empty() || rates[i] < rates[found.lowest]) found.lowest = i;
    known.push_back(rates[i]);
  }
  if (known.empty()) return found;
  std::ranges::sort(known);
  constexpr double least_share = 1e-6;  // a rate of 0 has no logarithm
  std::vector<double> logs;
  for (const double rate : known) logs.push_back(std::log(std::max(rate, least_share * known.back())));
  std::size_t slow = 0;
  const std::size_t fast = (known.size() + smallest_fast_share - 1) / smallest_fast_share;
  while (known.back() > 0) {
    const auto more = slow_group(std::span(logs).subspan(slow), fast);
    if (!more) break;
    slow += *more;
  }
  found.usual = upper_quartile(std::span(known).subspan(slow));
  const double slowest_fast = known[slow];
  for (std::size_t i = 0; i < rates.size(); ++i) {
    if (!std::isfinite(rates[i])) continue;
    const double share = rates[i] / found.usual;
    if (!(share < tolerance.warn_below) || (rates[i] >= slowest_fast && share >= tolerance.slow_anyway)) continue;
    found.slow.push_back({i, share < tolerance.fail_below ? Verdict::fail : Verdict::warn});
  }
  return found;
}

}  // namespace harness::doctor
