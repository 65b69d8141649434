#include "doctor/outliers.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace harness::doctor {

double median_of(std::vector<double> values) {
  if (values.empty()) return std::numeric_limits<double>::quiet_NaN();
  const auto middle = values.begin() + std::ssize(values) / 2;
  std::ranges::nth_element(values, middle);
  if (values.size() % 2 == 1) return *middle;
  return (*middle + *std::max_element(values.begin(), middle)) / 2;
}

Likeness compare_rates(std::span<const double> rates, const Tolerance& tolerance) {
  std::vector<double> known;
  Likeness found;
  for (std::size_t i = 0; i < rates.size(); ++i) {
    if (std::isnan(rates[i])) continue;
    if (known.empty() || rates[i] < rates[found.lowest]) found.lowest = i;
    known.push_back(rates[i]);
  }
  found.usual = known.size() == 2 ? std::max(known[0], known[1]) : median_of(known);
  if (known.size() < 2) return found;
  double scatter = 0;  // of few, nothing tells it
  if (known.size() >= 5) {
    std::vector<double> deviations;
    for (const double rate : known) deviations.push_back(std::abs(rate - found.usual));
    scatter = 1.4826 * median_of(std::move(deviations));
  }
  for (std::size_t i = 0; i < rates.size(); ++i) {
    const double share = rates[i] / found.usual;
    if (!(share < tolerance.warn_below) || found.usual - rates[i] < 4 * scatter) continue;
    found.slow.push_back({i, share < tolerance.fail_below ? Verdict::fail : Verdict::warn});
  }
  return found;
}

}  // namespace harness::doctor
