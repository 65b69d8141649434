#pragma once

#include <vector>

namespace harness::config {

/// What was measured of one kind of operation: how long one takes, over its size (FLOP or bytes).
struct CurvePoint {
  double size = 0, seconds = 0;
};

/// Measured points, joined by straight lines on logarithmic axes: a law of any shape between them, and exact at them.
class Curve {
 public:
  Curve() = default;
  /// In any order, of sizes and times above 0; of several with one size the mean of their logarithms.
  explicit Curve(std::vector<CurvePoint> points);

  /// The least curve above it that never falls: what is larger takes no less.
  Curve rising() const;

  bool empty() const { return points_.empty(); }
  const std::vector<CurvePoint>& points() const { return points_; }  // ascending
  /// What is smaller than all takes as long as the smallest: that is mostly a start. What is larger takes longer in
  /// proportion. 0 without points.
  double seconds_at(double size) const;

 private:
  std::vector<CurvePoint> points_;
};

}  // namespace harness::config
