#include "doctor/outliers.h"

#include <algorithm>
#include <cmath>

#include "base/median.h"

namespace harness::doctor {

Likeness compare_rates(std::span<const double> rates, const Tolerance& tolerance) {
  std::vector<double> known;
  Likeness found;
  for (std::size_t i = 0; i < rates.size(); ++i) {
    if (std::isnan(rates[i])) continue;
    if (known.empty() || rates[i] < rates[found.lowest]) found.lowest = i;
    known.push_back(rates[i]);
  }
  found.usual = known.size() == 2 ? std::max(known[0], known[1]) : median(known);
  if (known.size() < 2) return found;
  double scatter = 0;  // of few, nothing tells it
  if (known.size() >= 5) {
    std::vector<double> deviations;
    for (const double rate : known) deviations.push_back(std::abs(rate - found.usual));
    scatter = 1.4826 * median(deviations);
  }
  for (std::size_t i = 0; i < rates.size(); ++i) {
    const double share = rates[i] / found.usual;
    if (!(share < tolerance.warn_below) || found.usual - rates[i] < 4 * scatter) continue;
    found.slow.push_back({i, share < tolerance.fail_below ? Verdict::fail : Verdict::warn});
  }
  return found;
}

}  // namespace harness::doctor
