#include "analysis/heterogeneity.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "analysis/distributions.h"

namespace harness::analysis {
namespace {

bool counts(const OwnEstimate& estimate) {
  return std::isfinite(estimate.value) && std::isfinite(estimate.standard_error) && estimate.standard_error > 0 &&
         estimate.degrees > 0;
}

double weight_of(const OwnEstimate& estimate) {
  return 1 / (estimate.standard_error * estimate.standard_error);
}

}  // namespace

std::optional<double> heterogeneity_p(std::span<const OwnEstimate> estimates) {
  std::vector<OwnEstimate> counting;
  std::ranges::copy_if(estimates, std::back_inserter(counting), counts);
  if (counting.size() < 2) return {};
  double weights = 0, mean = 0;
  for (const OwnEstimate& estimate : counting) {
    weights += weight_of(estimate);
    mean += weight_of(estimate) * estimate.value;
  }
  mean /= weights;
  double q = 0, l = 0;
  for (const OwnEstimate& estimate : counting) {
    q += weight_of(estimate) * std::pow(estimate.value - mean, 2);
    l += std::pow(1 - weight_of(estimate) / weights, 2) / estimate.degrees;
  }
  const auto k = static_cast<double>(counting.size());
  const double f = q / (k - 1) / (1 + 2 * (k - 2) / (k * k - 1) * l);
  constexpr double as_good_as_infinite = 1e6;
  return f_upper_tail(f, k - 1, std::min((k * k - 1) / (3 * l), as_good_as_infinite));
}

}  // namespace harness::analysis
