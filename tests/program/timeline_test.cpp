#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <random>

#include "program/timeline.h"

namespace harness::program {
namespace {

const auto odd_communicates = [](OperationId id) { return id % 2 == 1; };

TEST(Overlap, AnEmptyStepIsIdle) {
  EXPECT_DOUBLE_EQ(split_step({}, odd_communicates, 2).idle_s, 2);
  EXPECT_DOUBLE_EQ(split_step({}, odd_communicates, 0).idle_s, 0);
}

// Compares random intervals, with ends on a grid of 2^-10 s, with a count of the grid's cells.
TEST(Overlap, AgreesWithCountingCells) {
  std::mt19937 random(11);
  constexpr int cells = 512;
  constexpr double cell_s = 1.0 / 1024;
  for (int round = 0; round < 400; ++round) {
    const int step_cells = 1 + static_cast<int>(random() % cells);
    std::vector<char> compute(cells), communication(cells);
    std::vector<Interval> intervals;
    for (unsigned n = random() % 30; n > 0; --n) {
      const int from = static_cast<int>(random() % cells), length = static_cast<int>(random() % 60);
      const int to = std::min(cells, from + length), before = random() % 8 == 0 ? 20 : 0;
      const OperationId id = static_cast<OperationId>(random() % 10);
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

Program program_of(const std::vector<Action>& actions) {
  Program program;
  program.streams = {"compute"};
  for (const Action& action : actions) program.step.push_back({action, 0, {}, -1, {}});
  return program;
}

// Two members on each axis: rank = tensor + 2 data + 4 pipeline. One role per stage. Each step: a computation, an
// all-reduce among tensor neighbours, activations to stage 1, another tensor all-reduce, and one of all ranks.
ProgramSet small_set() {
  ProgramSet set;
  set.layout.size = {2, 1, 2, 2};
  set.groups = {{"tensor", AxisSet::of({Axis::tensor}), {}}, {"world", AxisSet::all(), {}}};
  set.role_axes = AxisSet::of({Axis::pipeline});
  for (const Action& message : {Action(Send{{Axis::pipeline, 1}, {}}), Action(Receive{{Axis::pipeline, -1}, {}})}) {
    set.roles.push_back(program_of({Fill{}, AllReduce{.group = 0, .data = {}}, message,
                                    AllReduce{.group = 0, .data = {}}, AllReduce{.group = 1, .data = {}}}));
  }
  return set;
}

// A set of two stages only.
ProgramSet two_stages(const std::vector<Action>& first, const std::vector<Action>& second) {
  ProgramSet set;
  set.layout.size = {1, 1, 1, 2};
  set.role_axes = AxisSet::of({Axis::pipeline});
  set.roles = {program_of(first), program_of(second)};
  return set;
}

TEST(Waiting, IsWhatAMemberTakesBeyondTheQuickest) {
  std::vector<std::vector<float>> durations(8, {1, 1, 1, 1});
  durations[0][0] = 1.5F;   // tensor neighbour 1 came half a second later …
  durations[1][2] = 1.25F;  // … and 0 in the next one: the difference of their totals is less than they waited
  durations[2][0] = 3;      // another communicator
  for (int rank = 4; rank < 8; ++rank) durations[static_cast<std::size_t>(rank)][1] = 5;  // stage 1 waits for stage 0
  for (int rank = 0; rank < 4; ++rank) durations[static_cast<std::size_t>(rank)][3] = 4;  // then the reverse
  durations[3][3] = 4.5F;
  const auto waiting = find_waiting(small_set(), durations);
  ASSERT_EQ(waiting.size(), 8u);
  ASSERT_EQ(waiting[0].size(), 4u);
  EXPECT_EQ(waiting[0][0].members_s, 0.5F);
  EXPECT_EQ(waiting[1][0].members_s, 0);
  EXPECT_EQ(waiting[2][0].members_s, 2);
  EXPECT_EQ(waiting[3][0].members_s, 0);
  EXPECT_EQ(waiting[0][2].members_s, 0);
  EXPECT_EQ(waiting[1][2].members_s, 0.25F);
  for (std::size_t rank = 0; rank < 4; ++rank) {
    EXPECT_EQ(waiting[rank][1].stages_s, 0);  // the sender came last
    EXPECT_EQ(waiting[rank + 4][1].stages_s, 4);
    EXPECT_EQ(waiting[rank + 4][1].members_s, 0);
    EXPECT_EQ(waiting[rank][3].stages_s, 3);  // all ranks, whatever the waiting within the own stage
    EXPECT_EQ(waiting[rank + 4][3].stages_s, 0);
  }
  EXPECT_EQ(waiting[3][3].members_s, 0.5F);
}

TEST(Waiting, WhatWasNotMeasuredIsNotKnown) {
  std::vector<std::vector<float>> durations(8, {1, 1, 1, 1});
  durations[0] = {NAN, 2, 2, 2};
  durations[5].clear();
  const auto waiting = find_waiting(small_set(), durations);
  EXPECT_TRUE(std::isnan(waiting[0][0].members_s));
  EXPECT_TRUE(std::isnan(waiting[0][0].stages_s));
  EXPECT_EQ(waiting[1][0].members_s, 0);  // no other member with a known time
  EXPECT_EQ(waiting[0][2].members_s, 1);
  EXPECT_TRUE(waiting[5].empty());
  EXPECT_EQ(waiting[4][0].members_s, 0);
  EXPECT_TRUE(find_waiting(small_set(), {}).empty());
}

// Each of two stages is the other's next and previous one: forward and backward messages must not be matched.
TEST(Waiting, TellsTheWaysBetweenTwoStagesApart) {
  const ProgramSet set = two_stages({Send{{Axis::pipeline, 1}, {}}, Receive{{Axis::pipeline, 1}, {}}},
                                    {Send{{Axis::pipeline, -1}, {}}, Receive{{Axis::pipeline, -1}, {}}});
  const auto waiting = find_waiting(set, std::vector<std::vector<float>>{{1, 8}, {2, 4}});
  EXPECT_EQ(waiting[0][0].stages_s, 0);  // 1 → matches the receive of 4
  EXPECT_EQ(waiting[1][1].stages_s, 3);
  EXPECT_EQ(waiting[0][1].stages_s, 6);  // 8 ← matches the send of 2
  EXPECT_EQ(waiting[1][0].stages_s, 0);
}

// On an axis of two ranks, one place forward is one place back, as in verify() and the simulation.
TEST(Waiting, WaysOverTheEndOfAnAxisAreTheSame) {
  for (const int sent : {-3, -1, 1, 3}) {
    for (const int received : {-3, -1, 1, 3}) {
      const ProgramSet set = two_stages({Send{{Axis::pipeline, sent}, {}}}, {Receive{{Axis::pipeline, received}, {}}});
      const auto waiting = find_waiting(set, std::vector<std::vector<float>>{{1}, {4}});
      EXPECT_EQ(waiting[1][0].stages_s, 3) << sent << " and " << received;
    }
  }
}

TEST(Waiting, DurationsStandInTheOrderOfTheProgram) {
  const ProgramSet set = small_set();
  const std::vector<Interval> timeline{{4, 3, 8, 9}, {0, 0, 0, 1}, {1, 1, 1, 2}, {1, 1, 3, 3.5}, {2, 2, 4, 4.25}};
  const auto durations = communication_durations(set.roles[0], timeline);
  ASSERT_EQ(durations.size(), 4u);
  EXPECT_EQ(durations[0], 1.5F);  // in two pieces
  EXPECT_EQ(durations[1], 0.25F);
  EXPECT_TRUE(std::isnan(durations[2]));
  EXPECT_EQ(durations[3], 1);
}

}  // namespace

}  // namespace harness::program
