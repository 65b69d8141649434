#include "machine/gpus.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <filesystem>

#include "support/temporary_folder.h"

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
  driver_lists(4);  // device files come with the first use
  EXPECT_EQ(seen().count, 4);
  EXPECT_EQ(seen().names, (Names{"0", "1", "2", "3"}));
}

// A container may show the node's /proc and have device files of its own GPUs alone, or the reverse.
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
  EXPECT_EQ(count_with("1,9,2"), 1);  // it stops at the first that is not there
  EXPECT_EQ(seen({true, "GPU-8f1c,MIG-77", ""}).names, (Names{"GPU-8f1c", "MIG-77"}));
  EXPECT_EQ(seen({true, "0", "3"}).names, (Names{"0 of task 3"}));
  EXPECT_EQ(seen({true, "0,1", "3"}).names, (Names{"0", "1"}));
}

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
