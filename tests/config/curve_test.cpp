#include "config/calibration.h"

#include <gtest/gtest.h>

namespace harness::config {
namespace {

TEST(Curve, IsExactAtItsPointsAndStraightBetweenThemOnLogarithmicAxes) {
  const Curve curve({{1e6, 100}, {1e2, 1}});
  EXPECT_DOUBLE_EQ(curve.seconds_at(1e2), 1);
  EXPECT_DOUBLE_EQ(curve.seconds_at(1e6), 100);
  EXPECT_NEAR(curve.seconds_at(1e4), 10, 1e-9);
}

TEST(Curve, StaysAtItsLeastBelowAndGrowsInProportionAbove) {
  const Curve curve({{1e2, 1}, {1e6, 100}});
  EXPECT_DOUBLE_EQ(curve.seconds_at(1), 1);
  EXPECT_DOUBLE_EQ(curve.seconds_at(3e6), 300);
}

TEST(Curve, TakesTheMiddleOfWhatWasMeasuredTwice) {
  const Curve curve({{1e2, 1}, {1e2, 4}, {1e3, 20}});
  EXPECT_EQ(curve.points().size(), 2U);
  EXPECT_NEAR(curve.seconds_at(1e2), 2, 1e-12);
}

TEST(Curve, WithoutPointsTakesNothing) {
  EXPECT_EQ(Curve().seconds_at(10), 0);
}

}  // namespace
}  // namespace harness::config
