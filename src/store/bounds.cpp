#include "store/bounds.h"

#include <cmath>

#include "base/error.h"

namespace harness::store {
namespace {

template <class Number>
void require(std::string_view what, Number value, const Bounds& bounds, const Counts& counts) {
  const auto number = static_cast<double>(value);
  if (std::isnan(number) && bounds.unknown) return;
  const double high = bounds.high + (bounds.count == nullptr ? 0 : static_cast<double>(counts.*bounds.count));
  if (number >= bounds.low && number <= high) return;
  fail("{} is {}; possible here is {} to {}", what, value, bounds.low, high);
}

}  // namespace

void require_within(std::string_view what, std::int64_t value, const Bounds& bounds, const Counts& counts) {
  require(what, value, bounds, counts);
}

void require_within(std::string_view what, std::int32_t value, const Bounds& bounds, const Counts& counts) {
  require(what, value, bounds, counts);
}

void require_within(std::string_view what, double value, const Bounds& bounds, const Counts& counts) {
  require(what, value, bounds, counts);
}

}  // namespace harness::store
