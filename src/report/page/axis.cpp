#include "report/page/axis.h"

#include <algorithm>
#include <cmath>
#include <limits>

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

Axis decade_axis(const std::vector<double>& values, std::function<std::string(double)> label) {
  Axis axis = logarithmic_axis({}, std::move(label));
  axis.margin = 0.02;
  double low = std::numeric_limits<double>::infinity(), high = 0;
  for (const double value : values) {
    if (!(value > 0) || !std::isfinite(value)) continue;
    low = std::min(low, value);
    high = std::max(high, value);
  }
  if (!(high > 0)) return axis;  // nothing can be drawn over it
  constexpr int max_ticks = 10, few_decades = 3;
  const int first = static_cast<int>(std::floor(std::log10(low) + 1e-9));
  const int last = static_cast<int>(std::ceil(std::log10(high) - 1e-9));
  const int stride = (last - first) / max_ticks + 1;
  const std::vector<double> parts = last - first < few_decades ? std::vector{1.0, 2.0, 5.0} : std::vector{1.0};
  for (int power = first; power <= last; power += stride) {
    for (const double part : parts) axis.ticks.push_back(part * std::pow(10.0, power));
  }
  const double near_one = 1 + 1e-9;
  while (axis.ticks.size() > 2 && axis.ticks[1] <= low * near_one) axis.ticks.erase(axis.ticks.begin());
  while (axis.ticks.size() > 2 && axis.ticks[axis.ticks.size() - 2] >= high / near_one) axis.ticks.pop_back();
  axis.low = std::min(low, axis.ticks.front());
  axis.high = std::max(high, axis.ticks.back());
  return axis;
}

}  // namespace harness::page
