#include "machine/gpus.h"

#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>
#include <iterator>

#include "machine/fake_nvml/fake_nvml.h"
#include "support/wait.h"

namespace harness::machine {
namespace {

TEST(Nvml, TellsTheStateOfAllGpus) {
  fake_nvml()->answers = true;
  const GpuReport report = gpu_report();
  ASSERT_EQ(report.unavailable, "");
  EXPECT_EQ(report.driver, "570.86.15");
  ASSERT_EQ(report.gpus.size(), 1u);
  const GpuHealth& gpu = report.gpus[0];
  EXPECT_EQ(gpu.pci_bus_id, "0000:18:00.0");
  EXPECT_EQ(gpu.name, "NVIDIA Fake");
  EXPECT_EQ(gpu.memory_bytes, 80.0 * (1 << 30));
  EXPECT_EQ(gpu.persistence, true);
  EXPECT_EQ(gpu.mig, false);
  EXPECT_EQ(gpu.ecc_uncorrected, 5u);
  EXPECT_EQ(gpu.row_remap_pending, true);
  EXPECT_EQ(gpu.row_remap_failed, false);
  EXPECT_EQ(gpu.power_limit_w, 500);
  EXPECT_EQ(gpu.default_power_limit_w, 700);
  EXPECT_EQ(gpu.bar1_bytes, 128.0 * (1ull << 30));
  EXPECT_EQ(gpu.pcie_width, 8u);
  EXPECT_EQ(gpu.pcie_max_width, 16u);
  EXPECT_EQ(gpu.throttle_reasons, 0x4u);
  EXPECT_EQ(gpu.processes, 2u);
  EXPECT_EQ(gpu.nvlinks, (std::vector<bool>{true, false, true}));
  EXPECT_EQ(gpu.fabric_state, 3);
  EXPECT_EQ(gpu.fabric_status, 0);
  EXPECT_EQ(gpu.fabric_health, 0x9u);
  EXPECT_EQ(gpu.recovery_action, 2u);
  EXPECT_EQ(gpu.nvlink_recoveries, 33u);  // 10 + 11 + 12
  EXPECT_EQ(gpu.nvlink_crc_errors, 63u);
  EXPECT_EQ(gpu.compute_mode, std::nullopt);  // the driver lacks this function
}

TEST(Nvml, WhatAGpuDoesNotTellIsNothing) {
  fake_nvml()->answers = false;
  const GpuHealth gpu = gpu_report().gpus.at(0);
  EXPECT_EQ(gpu.memory_bytes, std::nullopt);
  EXPECT_EQ(gpu.persistence, std::nullopt);
  EXPECT_EQ(gpu.ecc_uncorrected, std::nullopt);
  EXPECT_EQ(gpu.power_limit_w, std::nullopt);
  EXPECT_EQ(gpu.throttle_reasons, std::nullopt);
  EXPECT_TRUE(gpu.nvlinks.empty());
  EXPECT_EQ(gpu.fabric_state, std::nullopt);
  EXPECT_EQ(gpu.fabric_health, std::nullopt);
  EXPECT_EQ(gpu.recovery_action, std::nullopt);
  EXPECT_EQ(gpu.nvlink_recoveries, std::nullopt);
}

// ---- The thread that samples.

void forget() {
  FakeNvml& fake = *fake_nvml();
  fake.answers = true;
  fake.samples = 0;
  fake.hangs = false;
  fake.energy_mj = 1000;
}

// Returns the number of threads of this process.
std::ptrdiff_t threads() {
  return std::distance(std::filesystem::directory_iterator("/proc/self/task"), std::filesystem::directory_iterator());
}

TEST(GpuMonitor, SamplesFromStartToStop) {
  forget();
  GpuMonitor monitor("0000:18:00.0");
  ASSERT_EQ(monitor.unavailable(), "");
  monitor.start();
  ASSERT_TRUE(test::wait_until([] { return fake_nvml()->samples >= 1; }));
  const GpuStatistics all = monitor.stop();
  ASSERT_GE(all.samples, 2);  // the first and the last; the number of samples in between depends on the machine
  const double n = static_cast<double>(all.samples);
  EXPECT_DOUBLE_EQ(all.mean_utilisation, (n - 1) / n);
  EXPECT_DOUBLE_EQ(all.mean_sm_clock_hz, 1.5e9);
  EXPECT_DOUBLE_EQ(all.min_sm_clock_hz, 1.5e9);
  EXPECT_DOUBLE_EQ(all.max_possible_sm_clock_hz, 1.98e9);
  EXPECT_DOUBLE_EQ(all.max_power_w, 400.5);
  EXPECT_DOUBLE_EQ(all.max_temperature_c, 64);
  EXPECT_DOUBLE_EQ(all.max_memory_used_bytes, 20.0 * (1 << 30));
  EXPECT_EQ(all.throttle_reasons, 0x4u);
  EXPECT_DOUBLE_EQ(all.energy_j, 0.5 * n);  // read once at the start and once with each sample

  monitor.start();  // discards the first samples
  const GpuStatistics again = monitor.stop();
  EXPECT_LT(again.samples, all.samples + 1);
  EXPECT_GE(again.samples, 1);
}

TEST(GpuMonitor, ReadingsThatFailAreUnknown) {
  forget();
  fake_nvml()->answers = false;
  GpuMonitor monitor("0000:18:00.0");
  monitor.start();
  const GpuStatistics all = monitor.stop();
  EXPECT_GE(all.samples, 1);
  EXPECT_TRUE(std::isnan(all.mean_utilisation));
  EXPECT_TRUE(std::isnan(all.mean_power_w));
  EXPECT_TRUE(std::isnan(all.energy_j));
  EXPECT_TRUE(std::isnan(all.max_possible_sm_clock_hz));
  EXPECT_EQ(all.throttle_reasons, 0u);
}

TEST(GpuMonitor, AnotherAddressIsSaid) {
  GpuMonitor monitor("0000:99:00.0");
  EXPECT_EQ(monitor.unavailable(), "NVML finds no GPU at 0000:99:00.0: Not Found");
  monitor.start();
  EXPECT_EQ(monitor.stop().samples, 0);
}

TEST(GpuMonitor, ADriverThatHangsDoesNotHangUs) {
  forget();
  fake_nvml()->hangs = true;
  const auto before = threads();
  GpuStatistics all;
  {
    GpuMonitor monitor("0000:18:00.0");
    monitor.start();
    all = monitor.stop();
  }
  // stop() returned although the driver has not answered.
  EXPECT_EQ(all.samples, 0);
  EXPECT_TRUE(std::isnan(all.energy_j));
  fake_nvml()->hangs = false;
  // Fewer if the thread of an earlier test was still ending before.
  EXPECT_TRUE(test::wait_until([&] { return threads() <= before; }));
}

}  // namespace
}  // namespace harness::machine
