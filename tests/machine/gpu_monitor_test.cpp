#include "machine/gpu_monitor.h"

#include <gtest/gtest.h>

#include <cmath>

namespace harness::machine {
namespace {

// With a driver or without: it may not throw, and what is missing is said.
TEST(GpuMonitor, AnAddressWithoutAGpuIsSaid) {
  GpuMonitor monitor("ffff:ff:1f.7");
  EXPECT_FALSE(monitor.unavailable().empty());
  monitor.start();
  const GpuStatistics statistics = monitor.stop();
  EXPECT_EQ(statistics.samples, 0);
  EXPECT_TRUE(std::isnan(statistics.mean_power_w));
  EXPECT_TRUE(std::isnan(statistics.energy_j));
  EXPECT_TRUE(std::isnan(statistics.max_possible_sm_clock_hz));
}

}  // namespace
}  // namespace harness::machine
