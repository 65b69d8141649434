#include "backend/cuda/ranges.h"

#include <gtest/gtest.h>

namespace harness::cuda {
namespace {

program::Operation labelled(program::Phase phase, int micro_batch, int layer, program::StreamId stream = 0) {
  program::Operation operation{program::Matmul{}, stream, {}, -1, {}};
  operation.label = {"x", phase, micro_batch, layer, false};
  return operation;
}

// What is open while each operation is issued, by doing what the plan says.
std::vector<std::vector<std::string>> walk(const RangePlan& plan) {
  std::vector<std::vector<std::string>> open_at;
  std::vector<std::string> stack;
  for (const RangeChange& change : plan.before) {
    EXPECT_LE(change.close, stack.size());
    for (int i = 0; i < change.close && !stack.empty(); ++i) stack.pop_back();
    stack.insert(stack.end(), change.open.begin(), change.open.end());
    open_at.push_back(stack);
  }
  EXPECT_EQ(plan.close_at_end, stack.size());
  return open_at;
}

TEST(Ranges, EveryOperationStandsInItsStepPhaseAndLayer) {
  const std::vector<program::Operation> step = {labelled(program::Phase::forward, 0, -1),
                                                labelled(program::Phase::forward, 0, 0),
                                                labelled(program::Phase::forward, 0, 0),
                                                labelled(program::Phase::forward, 0, 1),
                                                labelled(program::Phase::forward, 1, 1),
                                                labelled(program::Phase::backward, 1, 1),
                                                labelled(program::Phase::gradient_sync, -1, -1, 1),
                                                labelled(program::Phase::backward, 1, 0),
                                                labelled(program::Phase::optimizer, -1, -1)};
  const RangePlan plan = plan_ranges(step);
  using Path = std::vector<std::string>;
  const std::vector<Path> expected = {{"step", "forward micro-batch 0"},
                                      {"step", "forward micro-batch 0", "layer 0"},
                                      {"step", "forward micro-batch 0", "layer 0"},
                                      {"step", "forward micro-batch 0", "layer 1"},
                                      {"step", "forward micro-batch 1", "layer 1"},
                                      {"step", "backward micro-batch 1", "layer 1"},
                                      {"step", "gradient_sync"},
                                      {"step", "backward micro-batch 1", "layer 0"},
                                      {"step", "optimizer"}};
  EXPECT_EQ(walk(plan), expected);
}

TEST(Ranges, WhatStaysTheSameStaysOpen) {
  const std::vector<program::Operation> step = {
      labelled(program::Phase::forward, 0, 3), labelled(program::Phase::forward, 0, 3),
      labelled(program::Phase::forward, 0, 4), labelled(program::Phase::forward, 0, -1)};
  const RangePlan plan = plan_ranges(step);
  EXPECT_EQ(plan.before[0], (RangeChange{0, {"step", "forward micro-batch 0", "layer 3"}}));
  EXPECT_EQ(plan.before[1], RangeChange{});
  EXPECT_EQ(plan.before[2], (RangeChange{1, {"layer 4"}}));
  EXPECT_EQ(plan.before[3], (RangeChange{1, {}}));
  EXPECT_EQ(plan.close_at_end, 2);
}

TEST(Ranges, AnEmptyStepOpensNothing) {
  const RangePlan plan = plan_ranges({});
  EXPECT_TRUE(plan.before.empty());
  EXPECT_EQ(plan.close_at_end, 0);
}

// No profiler listens here: that nothing comes of it is what is shown.
TEST(Ranges, CanBeWalkedWithoutAProfiler) {
  const std::vector<program::Operation> step = {labelled(program::Phase::forward, 0, 0),
                                                labelled(program::Phase::optimizer, -1, -1)};
  Ranges ranges(plan_ranges(step));
  const Range replay("replay");
  ranges.before(0);
  ranges.before(1);
  ranges.end();
  EXPECT_THROW(ranges.before(2), std::out_of_range);
}

}  // namespace
}  // namespace harness::cuda
