// Sweeps of one operation whose settings are measured at several sizes.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <cstdint>

#include "analysis/blocks.h"
#include "analysis/level_course.h"
#include "analysis/questions.h"
#include "analysis/summary.h"
#include "summary_fixture.h"

namespace harness::analysis {
namespace {

enum : int { small, small_again, large, large_again, small_changed, large_changed, cases };

class GridTest : public SummaryTest {
 protected:
  // At 1 MiB everything takes eight times as long. nccl_algo=tree is 10 % faster at the baseline's size and 10 % slower
  // at 1 MiB. All share a drift. `factor`: of a block's seconds, by case and round.
  template <class Factor>
  store::Result grid(Factor factor, int rounds = 12) {
    const std::array of_cases{1.0, 1.0, 8.0, 8.0, 0.9, 8.8};
    store::Result result = sweep(rounds,
                                 {"message_size=1 MiB", "baseline_again at message_size=1 MiB", "nccl_algo=tree",
                                  "nccl_algo=tree at message_size=1 MiB"},
                                 [&](int c, int round) {
                                   return of_cases.at(static_cast<std::size_t>(c)) * factor(c, round) *
                                          (1 + 0.005 * round) * (1 + 0.001 * ((7 * c + 3 * round) % 5 - 2));
                                 });
    for (const int c : {large, large_again, large_changed}) at(result, c).reference = large;
    at(result, large).variable = "message_size";
    at(result, large).value = "1 MiB";
    for (const int c : {small_changed, large_changed}) {
      at(result, c).variable = "nccl_algo";
      at(result, c).value = "tree";
    }
    for (std::size_t i = 0; i < result.blocks.size(); ++i) {
      store::ResultBlock& block = result.blocks[i];
      const std::array set{0, 1, 0, 1, 2, 2};
      block.process = 10 * block.round + set.at(static_cast<std::size_t>(block.case_index));
      block.start_unix_s = 1000 + static_cast<double>(i);
    }
    return result;
  }
  store::Result grid(int rounds = 12) {
    return grid([](int, int) { return 1.0; }, rounds);
  }
  static store::ResultCase& at(store::Result& result, int c) { return result.cases[static_cast<std::size_t>(c)]; }
};

TEST_F(GridTest, ACaseIsJudgedAgainstTheBaselineAtItsSize) {
  const store::Result result = grid();
  EXPECT_TRUE(is_grid(result));
  EXPECT_EQ(declared_comparisons(result), 2);
  const Summary summary = summarise(result);
  EXPECT_EQ(summary.case_at(small_changed).judgement.verdict, Verdict::faster);
  EXPECT_NEAR(summary.case_at(small_changed).effect->ratio, 0.9, 0.003);
  EXPECT_EQ(summary.case_at(large_changed).judgement.verdict, Verdict::slower);
  EXPECT_NEAR(summary.case_at(large_changed).effect->ratio, 1.1, 0.003);
  EXPECT_EQ(summary.case_at(large).role, store::CaseRole::point);
  EXPECT_EQ(summary.case_at(large).judgement.reason, Reason::baseline);
  EXPECT_FALSE(summary.case_at(large).effect);
  EXPECT_FALSE(summary.unreliable);
  ASSERT_EQ(summary.levels.size(), 2u);
  EXPECT_EQ(summary.levels[0].reference, small);
  EXPECT_EQ(summary.levels[1].reference, large);
  EXPECT_EQ(summary.levels[1].blocks, 36);
}

TEST_F(GridTest, TheControlsShareTheirError) {
  const std::vector<Question> questions = questions_of(grid());
  EXPECT_NEAR(questions[small_again].alpha, 0.025, 1e-12);
  EXPECT_NEAR(questions[large_again].alpha, 0.025, 1e-12);
  EXPECT_NEAR(questions[small_changed].alpha, 0.025, 1e-12);
}

TEST_F(GridTest, AControlThatMovesAtOneSizeIsNamed) {
  const Summary summary = summarise(grid([](int c, int) { return c == large_again ? 1.06 : 1.0; }));
  EXPECT_TRUE(summary.unreliable);
  EXPECT_EQ(exit_code(summary), 4);
  EXPECT_NEAR(summary.control->ratio, 1.06, 0.003);
  EXPECT_TRUE(warns(summary, "] at message_size=1 MiB, so something other than the cases changed"));
  EXPECT_TRUE(warns(summary, "(at message_size=1 MiB), so it is no reference"));
  EXPECT_FALSE(summary.levels[0].baseline_left);
  EXPECT_TRUE(summary.levels[1].baseline_left);
}

// As many failed blocks as leave no verdict cost it at that size alone.
TEST_F(GridTest, AFailedBaselineCostsTheVerdictsAtItsSize) {
  store::Result result = grid();
  for (int round = 2; round < 12; ++round) {
    for (const int c : {large, large_again}) block(result, round, c).status = store::BlockStatus::failed;
  }
  block(result, 5, small).status = store::BlockStatus::failed;
  const Summary summary = summarise(result);
  EXPECT_EQ(summary.case_at(large_changed).judgement.reason, Reason::too_few_rounds);
  EXPECT_EQ(summary.case_at(small_changed).judgement.reason, Reason::interval);
  ASSERT_EQ(summary.lost.size(), 21u);
  for (const LostBlock& lost : summary.lost) EXPECT_EQ(lost.cost_a_verdict, lost.case_index != small);
  EXPECT_EQ(exit_code(summary), 4);
}

TEST_F(GridTest, EachSizeIsSettledByTheLooksForItself) {
  store::Result result = grid([](int c, int round) { return c == large_changed && round % 2 == 0 ? 0.85 : 1.0; });
  result.looks = "6,12";
  const Summary summary = summarise(result);
  EXPECT_EQ(summary.case_at(small_changed).settled_after, 6);
  EXPECT_EQ(summary.case_at(large_changed).settled_after, 0);
}

// Nothing jumps where sizes take turns, and all show the drift.
TEST_F(GridTest, TheCourseOfTheMachineHasTheBlocksOfAllSizes) {
  const LevelCourse course = level_course(grid());
  ASSERT_EQ(course.blocks.size(), 72u);
  EXPECT_TRUE(course.jumps.empty());
  for (std::size_t i = 1; i < course.blocks.size(); ++i) {
    EXPECT_EQ(course.blocks[i].index, i);
    if (course.blocks[i].round != course.blocks[i - 1].round) continue;
    EXPECT_NEAR(course.blocks[i].machine, course.blocks[i - 1].machine, 0.012) << i;
  }
}

TEST_F(GridTest, SizesAloneAreNotCompared) {
  store::Result result = grid();
  std::erase_if(result.blocks, [](const store::ResultBlock& row) { return row.case_index > large; });
  result.cases.resize(large + 1);
  EXPECT_TRUE(sweeps_sizes_alone(result));
  EXPECT_FALSE(is_grid(result));
  EXPECT_EQ(declared_comparisons(result), 0);
}

}  // namespace
}  // namespace harness::analysis
