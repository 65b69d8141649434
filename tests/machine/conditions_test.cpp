#include "machine/conditions.h"

#include <gtest/gtest.h>

#include <cmath>

namespace harness::machine {
namespace {

TEST(GpuStatistics, MeansAndExtremesOverWhatIsKnown) {
  GpuSample a, b, c;
  a.utilisation = 0.5;
  b.utilisation = 1.0;
  a.sm_clock_hz = 1.98e9;
  b.sm_clock_hz = 1.2e9;
  c.sm_clock_hz = 1.8e9;
  a.power_w = 650;
  b.power_w = 700;
  a.temperature_c = 61;
  b.temperature_c = 70;
  c.memory_used_bytes = 1e9;
  b.throttle_reasons = 0x4;
  c.throttle_reasons = 0x40;
  const GpuStatistics all = summarise(std::vector{a, b, c});
  EXPECT_EQ(all.samples, 3);
  EXPECT_DOUBLE_EQ(all.mean_utilisation, 0.75);
  EXPECT_DOUBLE_EQ(all.mean_sm_clock_hz, 1.66e9);
  EXPECT_DOUBLE_EQ(all.min_sm_clock_hz, 1.2e9);
  EXPECT_DOUBLE_EQ(all.mean_power_w, 675);
  EXPECT_DOUBLE_EQ(all.max_power_w, 700);
  EXPECT_DOUBLE_EQ(all.max_temperature_c, 70);
  EXPECT_DOUBLE_EQ(all.max_memory_used_bytes, 1e9);
  EXPECT_EQ(all.throttle_reasons, 0x44u);
  EXPECT_TRUE(std::isnan(all.energy_j));
}

TEST(GpuStatistics, OfSeveralDevicesTogether) {
  GpuStatistics a, b;
  a.samples = 3;
  b.samples = 4;
  a.mean_utilisation = 0.5;
  b.mean_utilisation = 1;
  a.min_sm_clock_hz = 1.2e9;
  b.min_sm_clock_hz = 1.5e9;
  a.max_power_w = 650;
  b.max_power_w = 700;
  a.energy_j = 100;  // b does not tell
  a.throttle_reasons = 0x4;
  b.throttle_reasons = 0x40;
  const GpuStatistics both = together(std::vector{a, b});
  EXPECT_EQ(both.samples, 7);
  EXPECT_DOUBLE_EQ(both.mean_utilisation, 0.75);
  EXPECT_DOUBLE_EQ(both.min_sm_clock_hz, 1.2e9);
  EXPECT_DOUBLE_EQ(both.max_power_w, 700);
  EXPECT_DOUBLE_EQ(both.energy_j, 200);
  EXPECT_TRUE(std::isnan(both.max_temperature_c));
  EXPECT_EQ(both.throttle_reasons, 0x44u);
  EXPECT_EQ(together({}).samples, 0);
  EXPECT_TRUE(std::isnan(together({}).energy_j));
}

TEST(GpuStatistics, ThrottleBitsAsWords) {
  EXPECT_EQ(harmful_throttling(0x1 | 0x4 | 0x40 | (1ull << 63)),
            "power cap, hardware thermal slowdown, reason 0x8000000000000000");
  EXPECT_EQ(harmful_throttling(0x1 | 0x2 | 0x100), "");
  EXPECT_EQ(harmful_throttling(0x1 | 0x8 | 0x80), "hardware slowdown, hardware power brake");
}

}  // namespace
}  // namespace harness::machine
