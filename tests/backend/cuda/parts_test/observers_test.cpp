#include <gtest/gtest.h>

#include "backend/cuda/activity.h"

// With CUPTI or without: it may not throw, and what is missing is said.
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

}  // namespace
}  // namespace harness::cuda
