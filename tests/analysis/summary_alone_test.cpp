// Sweeps in which some cases have processes of their own beside those that share one.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <cstdint>

#include "analysis/blocks.h"
#include "analysis/comparison.h"
#include "analysis/level_course.h"
#include "analysis/summary.h"
#include "summary_fixture.h"

namespace harness::analysis {
namespace {

constexpr int shared_change = 3, alone = 2, alone_change = 4;

class AloneTest : public SummaryTest {
 protected:
  // A process of its own costs 5 %. in_place=false is 10 % faster than the baseline, threads=2 as fast as the baseline
  // alone is: against the other baseline it would be 5 % slower. All share a drift.
  store::Result mixed(int rounds = 12) {
    const auto seconds = [](int c, int round) {
      const std::array of_cases{1.0, 1.0, 1.05, 0.9, 1.05};
      return of_cases.at(static_cast<std::size_t>(c)) * (1 + 0.005 * round) *
             (1 + 0.001 * ((7 * c + 3 * round) % 5 - 2));
    };
    store::Result result = sweep(rounds, {"baseline_alone", "in_place=false", "threads=2"}, seconds);
    for (const int c : {alone, alone_change}) result.cases[static_cast<std::size_t>(c)].reference = alone;
    for (const int c : {shared_change, alone_change}) result.cases[static_cast<std::size_t>(c)].variable = "a variable";
    for (std::size_t i = 0; i < result.blocks.size(); ++i) {
      store::ResultBlock& block = result.blocks[i];
      block.start_unix_s = 1000 + static_cast<double>(i);
      block.process = static_cast<std::int32_t>(result.is_alone(block.case_index) ? i : i - i % 5);
    }
    return result;
  }
};

TEST_F(AloneTest, ACaseIsJudgedAgainstTheBaselineOfItsKind) {
  const Summary summary = summarise(mixed());
  EXPECT_EQ(summary.case_at(shared_change).judgement.verdict, Verdict::faster);
  EXPECT_NEAR(summary.case_at(shared_change).effect->ratio, 0.9, 0.003);
  EXPECT_EQ(summary.case_at(alone_change).judgement.verdict, Verdict::same);
  EXPECT_NEAR(summary.case_at(alone_change).effect->ratio, 1, 0.003);
  EXPECT_EQ(summary.case_at(alone).judgement.reason, Reason::baseline);
  EXPECT_FALSE(summary.case_at(alone).effect);
  EXPECT_TRUE(summary.level && summary.level_alone);
  // Without the column they are cases like others.
  store::Result before = mixed();
  before.cases[alone].name = "a variable=1";
  for (const int c : {alone, alone_change}) before.cases[static_cast<std::size_t>(c)].reference = 0;
  for (std::size_t i = 0; i < before.blocks.size(); ++i) before.blocks[i].process = static_cast<std::int32_t>(i);
  EXPECT_EQ(summarise(before).case_at(alone_change).judgement.verdict, Verdict::slower);
  EXPECT_FALSE(summarise(before).own_process);
}

TEST_F(AloneTest, WhatAProcessOfItsOwnCostsIsFoundAndHasNoVerdict) {
  const Summary summary = summarise(mixed());
  ASSERT_TRUE(summary.own_process);
  EXPECT_NEAR(summary.own_process->ratio, 1.05, 0.002);
  EXPECT_LT(summary.own_process->low, summary.own_process->ratio);
  EXPECT_GT(summary.own_process->low, 1.04);
  EXPECT_LT(summary.own_process->high, 1.06);
  EXPECT_EQ(summary.own_process->verdict, Verdict::none);
  EXPECT_EQ(summary.own_process->rounds, 12);
  EXPECT_EQ(summary.own_process->rounds_needed, 0);
  EXPECT_FALSE(summarise(ordinary()).own_process);
}

// As many failed blocks as leave no verdict: of either baseline they cost those that are compared with it.
TEST_F(AloneTest, AFailedBaselineCostsTheCasesThatAreComparedWithIt) {
  for (const bool of_alone : {true, false}) {
    store::Result result = mixed();
    const int failing = of_alone ? alone : 0;
    for (int round = 3; round < 12; ++round) {
      block(result, round, failing).status = store::BlockStatus::failed;
      if (!of_alone) block(result, round, 1).status = store::BlockStatus::failed;  // the copy would do
    }
    const int other = of_alone ? 0 : alone;
    block(result, 5, other).status = store::BlockStatus::failed;
    const Summary summary = summarise(result);
    const int without = of_alone ? alone_change : shared_change, with = of_alone ? shared_change : alone_change;
    EXPECT_EQ(summary.case_at(without).judgement.reason, Reason::too_few_rounds) << of_alone;
    EXPECT_EQ(summary.case_at(with).judgement.reason, Reason::interval) << of_alone;
    ASSERT_GE(summary.lost.size(), 10u);
    for (const LostBlock& lost : summary.lost) EXPECT_EQ(lost.cost_a_verdict, lost.case_index != other) << of_alone;
    EXPECT_EQ(exit_code(summary), 4);
  }
  store::Result result = mixed();
  block(result, 3, alone).status = store::BlockStatus::failed;
  EXPECT_FALSE(summarise(result).lost[0].cost_a_verdict);
}

// The second sweep starts from what the first tried with a process of its own: its baseline shares one, and is another
// measurement; its baseline_alone is the same.
TEST_F(AloneTest, OfTwoFilesCasesOfOneKindAreCompared) {
  store::Result first = mixed(), second = mixed();
  first.cases[alone_change].settings[0] = "2";
  for (store::ResultCase& row : second.cases) row.settings[0] = "2";
  second.cases[shared_change].settings[0] = second.cases[alone_change].settings[0] = "3";
  first.cases[shared_change].settings[0] = "4";
  second.run_uuid = "another";
  const Summary of_first = summarise(first), of_second = summarise(second);
  const ComparedFile a{"A", &first, &of_first}, b{"B", &second, &of_second};
  const Comparison comparison = compare_sides(std::span(&a, 1), std::span(&b, 1));
  ASSERT_EQ(comparison.cases.size(), 1u);
  EXPECT_EQ(comparison.cases[0].name, "threads=2 = baseline_alone");
}

TEST_F(AloneTest, EachKindIsSettledByTheLooksForItself) {
  store::Result result = mixed();
  result.looks = "6,12";
  for (int round = 6; round < 12; ++round) block(result, round, alone_change).status = store::BlockStatus::left_out;
  result.smallest_effect = 0.02;
  const Summary summary = summarise(result);
  EXPECT_EQ(summary.case_at(shared_change).settled_after, 6);
  EXPECT_EQ(summary.case_at(alone_change).settled_after, 6);
  EXPECT_EQ(summary.case_at(alone_change).judgement.verdict, Verdict::same);
}

TEST_F(AloneTest, ProcessesAreCountedAndOnlySharedOnesHaveAnEffect) {
  const auto found = find_processes(mixed());
  ASSERT_TRUE(found);
  EXPECT_EQ(found->processes, 12 * 3);
  EXPECT_EQ(found->shared, 12);
  store::Result odd = mixed();
  for (std::size_t i = 0; i < odd.blocks.size(); ++i) {
    if (!odd.is_alone(odd.blocks[i].case_index)) continue;
    for (float& step : odd.step_seconds[i]) step *= i % 2 == 0 ? 2 : 1;
  }
  EXPECT_EQ(find_processes(odd)->deviation, found->deviation);
}

// Nothing jumps where blocks of both kinds take turns, and both show the drift.
TEST_F(AloneTest, TheCourseOfTheMachineHasTheBlocksOfBothKinds) {
  const LevelCourse course = level_course(mixed());
  ASSERT_EQ(course.blocks.size(), 60u);
  EXPECT_TRUE(course.jumps.empty());
  for (std::size_t i = 1; i < course.blocks.size(); ++i) {
    EXPECT_EQ(course.blocks[i].index, i);
    if (course.blocks[i].round != course.blocks[i - 1].round) continue;
    EXPECT_NEAR(course.blocks[i].machine, course.blocks[i - 1].machine, 0.012) << i;
  }
}

}  // namespace
}  // namespace harness::analysis
