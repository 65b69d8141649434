#include "config/calibration.h"

#include <gtest/gtest.h>

namespace harness::config {
namespace {

TEST(Curve, IsExactAtItsPointsAndStraightBetweenThemOnLogarithmicAxes) {
  const Curve curve({{1e6, 100}, {1e2, 1}});
  EXPECT_DOUBLE_EQ(curve.seconds_at(1e2), 1);
  EXPECT_DOUBLE_EQ(curve.seconds_at(1e6), 100);
  EXPECT_NEAR(curve.seconds_at(1e4), 10, 1e-9);
  EXPECT_DOUBLE_EQ(curve.seconds_at(1), 1) << "below all points it stays at the least";
  EXPECT_DOUBLE_EQ(curve.seconds_at(3e6), 300) << "above all points it grows in proportion";
  EXPECT_EQ(Curve().seconds_at(10), 0);
}

TEST(Curve, TakesTheMiddleOfWhatWasMeasuredTwice) {
  const Curve curve({{1e2, 1}, {1e2, 4}, {1e3, 20}});
  EXPECT_EQ(curve.points().size(), 2U);
  EXPECT_NEAR(curve.seconds_at(1e2), 2, 1e-12);
}

}  // namespace
}  // namespace harness::config
