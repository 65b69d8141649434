#include "backend/cuda/gpu_monitor.h"

#include <gtest/gtest.h>

#include <chrono>
#include <cmath>
#include <thread>

#include "backend/cuda/fake_observers/fake.h"

namespace harness::cuda {
namespace {

TEST(GpuMonitor, SamplesFromStartToStop) {
  *fake_nvml() = {};
  GpuMonitor monitor("0000:18:00.0");
  ASSERT_EQ(monitor.unavailable(), "");
  monitor.start();
  std::this_thread::sleep_for(std::chrono::milliseconds(250));
  const backend::GpuStatistics all = monitor.stop();
  ASSERT_GE(all.samples, 2);  // the first and the one at the end; those in between depend on the machine
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

  monitor.start();  // forgets the first
  const backend::GpuStatistics again = monitor.stop();
  EXPECT_LT(again.samples, all.samples + 1);
  EXPECT_GE(again.samples, 1);
}

TEST(GpuMonitor, ReadingsThatFailAreUnknown) {
  *fake_nvml() = {};
  fake_nvml()->answers = false;
  GpuMonitor monitor("0000:18:00.0");
  monitor.start();
  const backend::GpuStatistics all = monitor.stop();
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
  *fake_nvml() = {};
  fake_nvml()->hang_s = 4;
  const auto begin = std::chrono::steady_clock::now();
  backend::GpuStatistics all;
  {
    GpuMonitor monitor("0000:18:00.0");
    monitor.start();
    all = monitor.stop();
  }
  EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::milliseconds(3900));
  EXPECT_EQ(all.samples, 0);
  EXPECT_TRUE(std::isnan(all.energy_j));
  std::this_thread::sleep_for(std::chrono::milliseconds(2300));  // it ends by itself, before the process does
}

}  // namespace
}  // namespace harness::cuda
