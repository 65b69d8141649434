#include "config/curve.h"

#include <algorithm>
#include <cmath>
#include <cstddef>

namespace harness::config {

Curve::Curve(std::vector<CurvePoint> points) {
  std::ranges::sort(points, {}, &CurvePoint::size);
  for (std::size_t from = 0, to = 0; from < points.size(); from = to) {
    double logs = 0;
    for (; to < points.size() && points[to].size == points[from].size; ++to) logs += std::log(points[to].seconds);
    points_.push_back({points[from].size, std::exp(logs / static_cast<double>(to - from))});
  }
}

Curve Curve::rising() const {
  Curve curve = *this;
  for (std::size_t i = 1; i < curve.points_.size(); ++i)
    curve.points_[i].seconds = std::max(curve.points_[i].seconds, curve.points_[i - 1].seconds);
  return curve;
}

double Curve::seconds_at(double size) const {
  if (points_.empty()) return 0;
  const auto above = std::ranges::lower_bound(points_, size, {}, &CurvePoint::size);
  if (above == points_.begin()) return above->seconds;
  const CurvePoint& low = *(above - 1);
  if (above == points_.end()) return low.seconds * size / low.size;
  const double share = std::log(size / low.size) / std::log(above->size / low.size);
  return low.seconds * std::pow(above->seconds / low.seconds, share);
}

}  // namespace harness::config
