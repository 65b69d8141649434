#include "report/scale.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace harness::report {
namespace {

// The largest unit in which the smallest value is at least 1.
Scale choose(std::span<const double> values, std::initializer_list<Scale> from_largest) {
  double smallest = INFINITY;
  for (const double value : values) {
    if (value > 0 && value < smallest) smallest = value;
  }
  Scale chosen = *std::prev(from_largest.end());
  if (!std::isfinite(smallest)) return chosen;
  for (const Scale& scale : from_largest) {
    if (smallest >= scale.factor) return scale;
  }
  return chosen;
}

}  // namespace

std::string Scale::print(double value) const {
  if (!std::isfinite(value)) return "";
  const double scaled = value / factor;
  const int whole_digits = scaled >= 1 ? static_cast<int>(std::floor(std::log10(scaled))) + 1 : 1;
  return fmt::format("{:.{}f}", scaled, std::clamp(4 - whole_digits, 0, 3));
}

Scale scale_of_seconds(std::span<const double> values) {
  return choose(values, {{"s", 1}, {"ms", 1e-3}, {"us", 1e-6}});
}
Scale scale_of_flops(std::span<const double> values) {
  return choose(values, {{"PFLOP/s", 1e15}, {"TFLOP/s", 1e12}, {"GFLOP/s", 1e9}, {"MFLOP/s", 1e6}});
}
Scale scale_of_bytes(std::span<const double> values) {
  return choose(values, {{"GiB", 1073741824.0}, {"MiB", 1048576.0}, {"KiB", 1024.0}});
}

}  // namespace harness::report
