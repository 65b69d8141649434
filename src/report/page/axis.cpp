#include "report/page/axis.h"

#include <algorithm>
#include <cmath>

namespace harness::page {

double Axis::at(double value) const {
  const auto place = [&](double x) { return logarithmic ? std::log(x) : x; };
  const double range = place(high) - place(low);
  const double inner = range > 0 ? (place(std::clamp(value, low, high)) - place(low)) / range : 0.5;
  return margin + (1 - 2 * margin) * inner;
}

double tick_distance(double range, int count) {
  if (!(range > 0) || !std::isfinite(range) || count < 1) return 1;
  const double raw = range / count;
  const double power = std::pow(10.0, std::floor(std::log10(raw)));
  for (const double factor : {1.0, 2.0, 5.0}) {
    if (factor * power >= raw * (1 - 1e-9)) return factor * power;
  }
  return 10 * power;
}

int tick_decimals(double distance) {
  return std::clamp(static_cast<int>(std::ceil(-std::log10(distance) - 1e-9)), 0, 6);
}

namespace {

Axis with_ticks(double low, double high, double distance, std::function<std::string(double)> label) {
  Axis axis;
  axis.label = std::move(label);
  if (!std::isfinite(low) || !std::isfinite(high)) return axis;  // nothing can be drawn over it
  axis.low = low;
  axis.high = high > low ? high : low + distance;
  const double first = std::ceil(axis.low / distance - 1e-9), last = std::floor(axis.high / distance + 1e-9);
  constexpr int max_ticks = 100;
  for (int i = 0; i <= max_ticks && first + i <= last; ++i) {
    const double k = first + i;
    axis.ticks.push_back(k == 0 ? 0 : k * distance);  // no negative zero
  }
  return axis;
}

}  // namespace

Axis linear_axis(double low, double high, int count, std::function<std::string(double)> label) {
  return with_ticks(low, high, tick_distance(high - low, count), std::move(label));
}

Axis round_axis(double low, double high, int count, std::function<std::string(double)> label) {
  const double distance = tick_distance(high - low, count);
  return with_ticks(std::floor(low / distance + 1e-9) * distance, std::ceil(high / distance - 1e-9) * distance,
                    distance, std::move(label));
}

Axis logarithmic_axis(const std::vector<double>& values, std::function<std::string(double)> label) {
  Axis axis;
  axis.logarithmic = true;
  axis.label = std::move(label);
  axis.margin = 0.06;
  axis.ticks = values;
  const auto [low, high] = std::minmax_element(values.begin(), values.end());
  if (low != values.end()) {
    axis.low = *low;
    axis.high = *high;
  }
  return axis;
}

}  // namespace harness::page
