#include "sim/curve_time.h"

#include <gtest/gtest.h>

#include "sim/device_time.h"
#include "sim/link_time.h"

namespace harness::sim {
namespace {

using program::Collective;

// A start of 10 s and one byte a second.
double law(double bytes) {
  return 10 + bytes;
}

TEST(SecondsBy, AreTheCurvesWithinItAndGoOnAsTheLawBeyond) {
  const config::Curve curve({{10, 40}, {90, 200}});
  EXPECT_DOUBLE_EQ(seconds_by(curve, 10, law), 40);
  EXPECT_DOUBLE_EQ(seconds_by(curve, 90, law), 200);
  EXPECT_DOUBLE_EQ(seconds_by(curve, 990, law), 2000);  // the law: 100 and 1000
  EXPECT_DOUBLE_EQ(seconds_by(curve, 0, law), 20);      // the law: 20 and 10
  EXPECT_DOUBLE_EQ(seconds_by({}, 5, law), 15);
}

config::Calibration with_curves() {
  config::Calibration c;
  c.within_node = config::WithinNode{0.5, 1e-3, 2e-3};
  c.measured.ranks = 2;
  c.measured.communications["all_reduce"] = config::Curve({{1e3, 0.1}, {1e6, 0.4}});
  return c;
}

const Network cores{.rank_bytes_per_s = 1e6, .node_bytes_per_s = 0, .switches_reduce = false, .node_of = {}};

// A ring of four moves 3/2 of the size, one of two moves all of it.
TEST(MeasuredCurves, AreOfTheRanksThatMeasuredThemAndScaleAsARing) {
  const config::Calibration c = with_curves();
  EXPECT_DOUBLE_EQ(collective_seconds(Collective::all_reduce, 1e6, {2, 1, 2, 1}, cores, c), 0.4);
  EXPECT_NEAR(collective_seconds(Collective::all_reduce, 1e6 / 1.5, {4, 1, 4, 1}, cores, c), 0.4, 1e-9);
}

// 1 ms and half of a megabyte per second; a start of 0.6 of it for a half of an all-reduce.
TEST(MeasuredCurves, WhatHasNoneFollowsTheLawOfTheNode) {
  const config::Calibration c = with_curves();
  EXPECT_NEAR(collective_seconds(Collective::all_gather, 1e6, {2, 1, 2, 1}, cores, c), 0.6e-3 + 1, 1e-9);
  EXPECT_NEAR(message_seconds(1e6, 0, {}, cores, c), 2e-3 + 2, 1e-9);
}

TEST(ProductSeconds, WithoutMultiprocessorsAreOneTile) {
  config::Calibration c;
  c.product_share = 0.5;
  c.memory_share = 1;
  c.product_ramp = 100;
  c.software.kernel_s = 1;
  const Device cpu{.flops = 1e6, .memory_bytes_per_s = 1e12, .multiprocessors = 0};
  EXPECT_NEAR(product_seconds(10, 10, 900, 1, 1, cpu, c), 2.0 * 10 * 10 * 1000 / 0.5e6 + 1, 1e-9);
}

}  // namespace
}  // namespace harness::sim
