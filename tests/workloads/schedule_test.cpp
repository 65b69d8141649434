#include "workloads/gpt/schedule.h"

#include <gtest/gtest.h>

#include <string>

namespace harness::gpt {
namespace {

// "F0 F1 B0 …"
std::string text(int stage, int stages, int micro_batches) {
  std::string all;
  for (const Pass& pass : one_forward_one_backward(stage, stages, micro_batches)) {
    EXPECT_EQ(pass.chunk, 0);
    if (!all.empty()) all += ' ';
    all += (pass.direction == Pass::Direction::forward ? "F" : "B") + std::to_string(pass.micro_batch);
  }
  return all;
}

TEST(OneForwardOneBackward, RunsAheadByTheStagesBehind) {
  EXPECT_EQ(text(0, 3, 4), "F0 F1 F2 B0 F3 B1 B2 B3");
  EXPECT_EQ(text(1, 3, 4), "F0 F1 B0 F2 B1 F3 B2 B3");
  EXPECT_EQ(text(2, 3, 4), "F0 B0 F1 B1 F2 B2 F3 B3");
}

TEST(OneForwardOneBackward, OfOneStageAccumulatesGradients) {
  EXPECT_EQ(text(0, 1, 3), "F0 B0 F1 B1 F2 B2");
}

TEST(OneForwardOneBackward, WithFewerMicroBatchesThanStagesAllGoForwardFirst) {
  EXPECT_EQ(text(0, 4, 2), "F0 F1 B0 B1");
}

TEST(OneForwardOneBackward, SaysWhichBackwardPassIsTheFirstAndWhichTheLast) {
  for (int stage = 0; stage < 3; ++stage) {
    for (const int micro_batches : {1, 2, 5}) {
      for (const Pass& pass : one_forward_one_backward(stage, 3, micro_batches)) {
        const bool backward = pass.direction == Pass::Direction::backward;
        EXPECT_EQ(pass.first, backward && pass.micro_batch == 0);
        EXPECT_EQ(pass.last, backward && pass.micro_batch == micro_batches - 1);
      }
    }
  }
}

}  // namespace
}  // namespace harness::gpt
