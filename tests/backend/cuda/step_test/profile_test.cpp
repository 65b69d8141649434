// A profiled step over the emulated device, with the fake CUPTI.
#ifdef HARNESS_HAS_FAKE_CUPTI
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "backend/cuda/fake_observers/fake.h"
#include "training/local_job.h"

namespace harness::cuda {
namespace {

using test::LocalJob;
using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

const config::Model one_layer{"tiny", 1, 32, 2, 64, 16};
constexpr const char* empty_handed = "CUPTI recorded nothing";

class ProfiledStep : public ::testing::Test {
 protected:
  void SetUp() override { *fake_cupti() = {}; }
  void TearDown() override { *fake_cupti() = {}; }

  // Returns rank 0's intervals.
  std::vector<program::Interval> profile(const program::Layout& layout, bool graph) {
    config::Settings s;
    s.global_batch_size = 2;
    s.micro_batch_size = 1;
    s.cuda_graph = graph;
    LocalJob job(one_layer, s, layout);
    operations_ = job.program(0).step.size();
    const auto intervals = job.run_profiled();
    job.run(1);  // works only if all ranks ran equally many steps
    warnings_ = job.warnings(0);
    return intervals;
  }

  std::size_t operations_ = 0;
  std::vector<std::string> warnings_;
};

TEST_F(ProfiledStep, AnEmptyRecordingFallsBackToEventsOfTheSameStep) {
  for (const bool graph : {false, true}) {
    for (const program::Layout& layout : {test::layout_of(1, 1, 1), test::layout_of(1, 1, 2)}) {
      const auto intervals = profile(layout, graph);
      ASSERT_EQ(intervals.size(), operations_);
      double longest_s = 0;
      for (const program::Interval& i : intervals) longest_s = std::max(longest_s, i.end_s - i.start_s);
      EXPECT_GT(longest_s, 0);
      // A process has one recording at a time: of two ranks here, one may have been refused.
      const char* why = layout.ranks() == 1 ? empty_handed : "taken with CUDA events";
      EXPECT_THAT(warnings_, Contains(HasSubstr(why)));
    }
  }
}

// CUPTI's header demands a device synchronisation before the flush: without it the fake delivers no complete records.
TEST_F(ProfiledStep, TheDeviceIsSynchronizedBeforeTheRecordingEnds) {
  fake_cupti()->kernel_per_push = true;
  fake_cupti()->synchronized = [] { return fake::synchronized(); };
  const auto intervals = profile(test::layout_of(1, 1, 1), false);
  EXPECT_THAT(intervals, Not(IsEmpty()));
  EXPECT_NEAR(intervals.front().end_s - intervals.front().start_s, 5e-9, 1e-12);  // from a record, not from events
  EXPECT_THAT(warnings_, Not(Contains(HasSubstr(empty_handed))));
  EXPECT_THAT(warnings_, Not(Contains(HasSubstr("incomplete"))));
}

}  // namespace
}  // namespace harness::cuda

#endif
