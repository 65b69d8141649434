#include <gtest/gtest.h>

#include <cmath>

#include "backend/cuda/activity.h"
#include "backend/cuda/gpu_monitor.h"

// With a driver or without: neither may throw, and what is missing is said.
namespace harness::cuda {
namespace {

TEST(ActivityRecorder, EitherRecordsOrSaysWhyNot) {
  ActivityRecorder recorder;
  std::string problem;
  EXPECT_TRUE(recorder.stop(problem).empty());
  EXPECT_EQ(problem, "no recording is under way");
  recorder.push(1);  // without a recording: nothing
  recorder.pop();

  const std::string refused = recorder.start();
  if (!ActivityRecorder::unavailable().empty()) {
    EXPECT_EQ(refused, ActivityRecorder::unavailable());
    EXPECT_EQ(ActivityRecorder::now_ns(), 0u);
  }
  if (!refused.empty()) {
    EXPECT_TRUE(recorder.stop(problem).empty());
    EXPECT_EQ(problem, "no recording is under way");
    return;
  }
  ActivityRecorder second;
  EXPECT_EQ(second.start(), "a recording is under way");
  recorder.push(1);
  recorder.pop();
  EXPECT_GT(ActivityRecorder::now_ns(), 0u);
  EXPECT_TRUE(recorder.stop(problem).empty());  // nothing was launched
}

TEST(GpuMonitor, AnAddressWithoutAGpuIsSaid) {
  GpuMonitor monitor("ffff:ff:1f.7");
  EXPECT_FALSE(monitor.unavailable().empty());
  monitor.start();
  const backend::GpuStatistics statistics = monitor.stop();
  EXPECT_EQ(statistics.samples, 0);
  EXPECT_TRUE(std::isnan(statistics.mean_power_w));
  EXPECT_TRUE(std::isnan(statistics.energy_j));
  EXPECT_TRUE(std::isnan(statistics.max_possible_sm_clock_hz));
}

}  // namespace
}  // namespace harness::cuda
