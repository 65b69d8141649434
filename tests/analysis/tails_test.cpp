// Tails of the steps, docs/method.md "Block, round, session".
#include "analysis/blocks.h"

#include <gtest/gtest.h>

#include "analysis/summary.h"

namespace harness::analysis {
namespace {

// Two blocks of `steps` timed steps, one twice as slow as the other. A step takes 1 s, every tenth of a block 1.5 s and
// its last 3 s, times the block's pace.
store::Result two_blocks(int steps) {
  store::Result result;
  result.warmup_steps = 1;
  result.steps = steps;
  result.cases.resize(1);
  result.cases[0].name = "baseline";
  result.cases[0].status = store::CaseStatus::ok;
  for (const float pace : {1.0F, 2.0F}) {
    store::ResultBlock block;
    block.status = store::BlockStatus::ok;
    block.session = 0;
    result.blocks.push_back(block);
    std::vector<float> seconds{100};  // the warm-up counts nothing
    for (int i = 1; i < steps; ++i) seconds.push_back(pace * (i % 10 == 0 ? 1.5F : 1.0F));
    seconds.push_back(3 * pace);
    result.step_seconds.push_back(seconds);
  }
  return result;
}

// 120 steps: 2 of 3, 10 of 1.5, 108 of 1. p95 is the 114th smallest, p99 the 119th.
TEST(Tails, AreOverTheMedianOfTheBlock) {
  const auto tails = tails_of(two_blocks(60), 0);
  ASSERT_TRUE(tails);
  EXPECT_FLOAT_EQ(tails->p95, 1.5);
  EXPECT_FLOAT_EQ(tails->p99, 3);
  EXPECT_FLOAT_EQ(summarise(two_blocks(60)).cases[0].tails->p99, 3);
}

TEST(Tails, AreNoneBelowAHundredSteps) {
  EXPECT_FALSE(tails_of(two_blocks(49), 0));
  EXPECT_TRUE(tails_of(two_blocks(50), 0));
  store::Result failed = two_blocks(60);
  failed.blocks[0].status = store::BlockStatus::failed;
  EXPECT_FALSE(tails_of(failed, 0));
}

}  // namespace
}  // namespace harness::analysis
