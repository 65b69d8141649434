#include "backend/cuda/profile.h"

#include <cupti.h>
#include <gtest/gtest.h>

#include <utility>

#include "backend/cuda/fake_observers/fake.h"

namespace harness::cuda {
namespace {

TEST(Activity, RecordsComeBackWithTheirIds) {
  ActivityRecorder recorder;
  ASSERT_EQ(recorder.start(), "");
  EXPECT_GT(fake_cupti()->enabled, 0);
  recorder.push(7);
  fake_launch(0, 200, 300);
  recorder.push(8);
  fake_launch(3, 100, 110);
  recorder.pop();
  fake_launch(1, 400, 500);
  recorder.pop();
  fake_launch(2, 500, 600);

  std::string problem = "x";
  const auto records = recorder.stop(problem);
  EXPECT_EQ(problem, "");
  EXPECT_EQ(fake_cupti()->enabled, 0);
  ASSERT_EQ(records.size(), 4u);
  const auto expect = [&](std::size_t i, std::uint64_t external, std::uint64_t start, std::uint64_t end) {
    EXPECT_EQ(records[i].external_id, external) << i;
    EXPECT_EQ(records[i].start_ns, start) << i;
    EXPECT_EQ(records[i].end_ns, end) << i;
  };
  expect(0, 7, 200, 300);
  expect(1, 8, 100, 110);
  expect(2, 7, 400, 500);
  expect(3, 0, 500, 600);
}

TEST(Activity, ARecordingBeginsEmptyAndOneIsEnough) {
  ActivityRecorder first;
  {
    ActivityRecorder forgotten;
    ASSERT_EQ(forgotten.start(), "");
    fake_launch(0, 1, 2);
    EXPECT_EQ(first.start(), "a recording is under way");
  }
  EXPECT_EQ(fake_cupti()->enabled, 0);
  ASSERT_EQ(first.start(), "");
  fake_launch(0, 3, 4);
  std::string problem;
  const auto records = first.stop(problem);
  ASSERT_EQ(records.size(), 1u);
  EXPECT_EQ(records[0].start_ns, 3u);
}

// Disabling kernel records may hang in the CUPTI of CUDA 13.0 without an update.
TEST(Activity, KernelsAreNotDisabledWhereThatMayHang) {
  for (const auto& [version, left] : {std::pair{120009u, 0}, {130000u, 1}, {130001u, 0}, {130100u, 0}}) {
    *fake_cupti() = {};
    fake_cupti()->version = version;
    ActivityRecorder recorder;
    ASSERT_EQ(recorder.start(), "");
    fake_launch(0, 1, 2);
    std::string problem;
    EXPECT_EQ(recorder.stop(problem).size(), 1u);
    EXPECT_EQ(fake_cupti()->enabled, left) << version;
    ASSERT_EQ(recorder.start(), "");  // a new recording starts empty
    EXPECT_TRUE(recorder.stop(problem).empty());
  }
  *fake_cupti() = {};
}

TEST(Activity, WhatIsMissingIsSaid) {
  ActivityRecorder recorder;
  fake_cupti()->fail_enable_kind = CUPTI_ACTIVITY_KIND_DRIVER;
  EXPECT_EQ(recorder.start(), "cuptiActivityEnable failed: CUPTI_ERROR_INSUFFICIENT_PRIVILEGES (35)");
  EXPECT_EQ(fake_cupti()->enabled, 0);
  fake_cupti()->fail_enable_kind = -1;

  fake_cupti()->dropped = 3;
  ASSERT_EQ(recorder.start(), "");
  fake_launch(0, 1, 2);
  std::string problem;
  EXPECT_EQ(recorder.stop(problem).size(), 1u);
  EXPECT_EQ(problem, "CUPTI dropped 3 records");
  fake_cupti()->dropped = 0;
}

// Resets the fake CUPTI before and after each test.
class LateActivity : public ::testing::Test {
 protected:
  void SetUp() override { *fake_cupti() = {}; }
  void TearDown() override { *fake_cupti() = {}; }

  std::vector<ActivityRecord> record_kernels(bool with_times = true) {
    ActivityRecorder recorder;
    EXPECT_EQ(recorder.start(), "");
    fake_launch(0, 1, 2);
    fake_launch(0, with_times ? 2 : 0, with_times ? 3 : 0);
    return recorder.stop(problem_);
  }
  std::string problem_;
};

TEST_F(LateActivity, ABufferThatAPlainFlushKeepsBackIsForced) {
  EXPECT_EQ(record_kernels().size(), 2u);
  EXPECT_EQ(problem_, "");
  fake_cupti()->late = true;
  EXPECT_EQ(record_kernels().size(), 2u);
  EXPECT_EQ(problem_, "");
}

TEST_F(LateActivity, ARecordWithoutTimesIsLeftOutAndSaid) {
  fake_cupti()->late = true;
  const auto records = record_kernels(false);
  ASSERT_EQ(records.size(), 1u);
  EXPECT_EQ(records[0].start_ns, 1u);
  EXPECT_EQ(problem_, "CUPTI gave 1 records without times");
}

TEST_F(LateActivity, NothingEvenWhenForcedIsAnEmptyRecording) {
  fake_cupti()->silent = true;
  EXPECT_TRUE(record_kernels().empty());
  EXPECT_EQ(problem_, "");
  EXPECT_EQ(fake_cupti()->enabled, 0);
  fake_cupti()->silent = false;
  ActivityRecorder next;  // records that were held back belong to no later recording
  ASSERT_EQ(next.start(), "");
  EXPECT_TRUE(next.stop(problem_).empty());
}

}  // namespace
}  // namespace harness::cuda
