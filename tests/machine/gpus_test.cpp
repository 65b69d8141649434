#include "machine/gpus.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <filesystem>

#include "machine/conditions.h"
#include "support/files.h"

namespace harness::machine {
namespace {

class Gpus : public ::testing::Test {
 protected:
  void folder(const std::string& path) const { std::filesystem::create_directories(root_ / path); }
  void file(const std::string& path) const { root_.write(path, ""); }
  void driver_lists(int gpus) const {
    for (int i = 0; i < gpus; ++i) folder("proc/driver/nvidia/gpus/0000:" + std::to_string(10 + i) + ":00.0");
  }
  GpuView seen(const GpuEnvironment& environment = {}) const { return find_gpus(environment, root_.path()); }
  int count_with(const std::string& visible) const { return seen({true, visible, ""}).count; }
  const test::TemporaryFolder root_;
};

using Names = std::vector<std::string>;

TEST_F(Gpus, AMachineWithoutADriverHasNone) {
  EXPECT_EQ(seen().count, 0);
  EXPECT_EQ(seen().on_node, 0);
  EXPECT_TRUE(seen().names.empty());
  EXPECT_EQ(count_with("0,1"), 0);
}

TEST_F(Gpus, TheDriversListCountsBeforeDeviceFilesAreThere) {
  driver_lists(4);  // device files are created on first use
  EXPECT_EQ(seen().count, 4);
  EXPECT_EQ(seen().names, (Names{"0", "1", "2", "3"}));
}

// A container may show the node's /proc but have device files of its own GPUs only, or the reverse.
TEST_F(Gpus, TheSmallerOfListAndDeviceFilesCounts) {
  for (int listed = 1; listed <= 4; ++listed) {
    driver_lists(listed);
    for (int devices = 1; devices <= 8; ++devices) {
      file("dev/nvidia" + std::to_string(devices - 1));
      EXPECT_EQ(seen().count, std::min(listed, devices)) << listed << " listed, " << devices << " device files";
    }
    std::filesystem::remove_all(root_ / "dev");
  }
}

TEST_F(Gpus, ElseTheDeviceFilesDo) {
  for (const char* name : {"nvidia0", "nvidia1", "nvidia10", "nvidiactl", "nvidia-uvm", "nvidia-caps", "nvidia0x"}) {
    file(std::string("dev/") + name);
  }
  EXPECT_EQ(seen().count, 3);
}

TEST_F(Gpus, UnderAnotherDriverNothingCanBeTold) {
  file("dev/dxg");
  EXPECT_EQ(seen().count, -1);
  EXPECT_EQ(count_with("0"), -1);
}

TEST_F(Gpus, TheEnvironmentLimitsThemAsCudaDoes) {
  driver_lists(4);
  EXPECT_EQ(seen({true, "2, 0", ""}).names, (Names{"2", "0"}));
  EXPECT_EQ(count_with(""), 0);
  EXPECT_EQ(count_with("-1"), 0);
  EXPECT_EQ(count_with("NoDevFiles"), 0);
  EXPECT_EQ(count_with("1,9,2"), 1);  // stops at the first missing one
  EXPECT_EQ(seen({true, "GPU-8f1c,MIG-77", ""}).names, (Names{"GPU-8f1c", "MIG-77"}));
  EXPECT_EQ(seen({true, "0", "3"}).names, (Names{"0 of task 3"}));
  EXPECT_EQ(seen({true, "0,1", "3"}).names, (Names{"0", "1"}));
}

// With or without a driver, it must not throw, and reports what is missing.
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

// ---- Samples of a GPU, joined.

TEST(GpuStatistics, MeansAndExtremesOverWhatIsKnown) {
  const GpuSample a{.utilisation = 0.5, .sm_clock_hz = 1.98e9, .power_w = 650, .temperature_c = 61};
  const GpuSample b{
      .utilisation = 1, .sm_clock_hz = 1.2e9, .power_w = 700, .temperature_c = 70, .throttle_reasons = 0x4};
  const GpuSample c{.sm_clock_hz = 1.8e9, .memory_used_bytes = 1e9, .throttle_reasons = 0x40};
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
  GpuStatistics a{
      .samples = 3, .mean_utilisation = 0.5, .min_sm_clock_hz = 1.2e9, .max_power_w = 650, .throttle_reasons = 0x4};
  const GpuStatistics b{
      .samples = 4, .mean_utilisation = 1, .min_sm_clock_hz = 1.5e9, .max_power_w = 700, .throttle_reasons = 0x40};
  a.energy_j = 100;  // b does not report it
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
