#include "program/interval.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>

namespace harness::program {
namespace {

const auto odd_communicates = [](program::OperationId id) { return id % 2 == 1; };

TEST(Overlap, AStepByHand) {
  // compute 0-4 and 5-6 (twice at 1-2), communication 3-7 and 9-11 of a step of 10: 11 is beyond its end.
  const std::vector<program::Interval> intervals = {
      {0, 0, 0, 4}, {2, 0, 5, 6}, {4, 1, 1, 2}, {1, 2, 3, 7}, {3, 2, 9, 11}};
  const StepSplit split = split_step(intervals, odd_communicates, 10);
  EXPECT_DOUBLE_EQ(split.step_s, 10);
  EXPECT_DOUBLE_EQ(split.compute_s, 5);
  EXPECT_DOUBLE_EQ(split.communication_s, 5);
  EXPECT_DOUBLE_EQ(split.exposed_s, 3);     // 4-5, 6-7, 9-10
  EXPECT_DOUBLE_EQ(split.overlapped_s, 2);  // 3-4, 5-6
  EXPECT_DOUBLE_EQ(split.idle_s, 2);        // 7-9
}

TEST(Overlap, AnEmptyStepIsIdle) {
  EXPECT_DOUBLE_EQ(split_step({}, odd_communicates, 2).idle_s, 2);
  EXPECT_DOUBLE_EQ(split_step({}, odd_communicates, 0).idle_s, 0);
}

// Random intervals with ends on a grid of 2^-10 s, against a count of the grid's cells.
TEST(Overlap, AgreesWithCountingCells) {
  std::mt19937 random(11);
  constexpr int cells = 512;
  constexpr double cell_s = 1.0 / 1024;
  for (int round = 0; round < 400; ++round) {
    const int step_cells = 1 + static_cast<int>(random() % cells);
    std::vector<char> compute(cells), communication(cells);
    std::vector<program::Interval> intervals;
    for (unsigned n = random() % 30; n > 0; --n) {
      const int from = static_cast<int>(random() % cells), length = static_cast<int>(random() % 60);
      const int to = std::min(cells, from + length), before = random() % 8 == 0 ? 20 : 0;
      const program::OperationId id = static_cast<program::OperationId>(random() % 10);
      intervals.push_back({id, 0, (from - before) * cell_s, to * cell_s});
      for (int c = std::max(0, from - before); c < to; ++c) {
        (odd_communicates(id) ? communication : compute)[static_cast<std::size_t>(c)] = 1;
      }
    }
    int computing = 0, communicating = 0, exposed = 0, idle = 0;
    for (std::size_t c = 0; c < static_cast<std::size_t>(step_cells); ++c) {
      computing += compute[c];
      communicating += communication[c];
      exposed += communication[c] != 0 && compute[c] == 0 ? 1 : 0;
      idle += communication[c] == 0 && compute[c] == 0 ? 1 : 0;
    }
    const StepSplit split = split_step(intervals, odd_communicates, step_cells * cell_s);
    EXPECT_DOUBLE_EQ(split.compute_s, computing * cell_s);
    EXPECT_DOUBLE_EQ(split.communication_s, communicating * cell_s);
    EXPECT_DOUBLE_EQ(split.exposed_s, exposed * cell_s);
    EXPECT_DOUBLE_EQ(split.idle_s, idle * cell_s);
    EXPECT_DOUBLE_EQ(split.compute_s + split.exposed_s + split.idle_s, split.step_s);
    EXPECT_DOUBLE_EQ(split.exposed_s + split.overlapped_s, split.communication_s);
  }
}

}  // namespace
}  // namespace harness::program
