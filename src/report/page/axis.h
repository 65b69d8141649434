#pragma once

#include <functional>
#include <string>
#include <vector>

namespace harness::page {

/// Where values stand along a drawing's width, 0 to 1, and which of them are marked.
struct Axis {
  double low = 0, high = 1;
  double margin = 0.02;  // share left free at either end
  bool logarithmic = false;
  std::vector<double> ticks;
  std::function<std::string(double)> label;

  double at(double value) const;  // beyond the ends: at the edge
  bool contains(double value) const { return value >= low && value <= high; }
};

/// From low to high with about `count` ticks at 1, 2 or 5 times a power of ten.
Axis linear_axis(double low, double high, int count, std::function<std::string(double)> label);
/// Widens both ends to ticks.
Axis round_axis(double low, double high, int count, std::function<std::string(double)> label);
/// Ticks at the values themselves (numbers of ranks), equal factors equally far apart.
Axis logarithmic_axis(const std::vector<double>& values, std::function<std::string(double)> label);

/// Over these positive values, equal factors equally far apart, with ticks at the powers of ten; at 1, 2 and 5 times
/// them where they are few. Of more than ten powers only every other or third has one.
Axis decade_axis(const std::vector<double>& values, std::function<std::string(double)> label);

/// The distance of such ticks.
double tick_distance(double range, int count);
/// Enough decimals to tell ticks apart that are so far from one another.
int tick_decimals(double distance);

}  // namespace harness::page
