// Sweeps of one operation, with settings measured at several sizes.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>

#include "analysis/estimator.h"
#include "analysis/summary.h"
#include "base/text.h"
#include "summary_fixture.h"

namespace harness::analysis {

namespace {

enum : int { small, small_again, large, large_again, small_changed, large_changed, cases };

double wobble(int c, int round) {
  return 1 + 0.001 * ((7 * c + 3 * round) % 5 - 2);
}

class GridTest : public SummaryTest {
 protected:
  // At 1 MiB everything takes eight times as long. nccl_algo=tree is 10 % faster at the baseline's size and 10 % slower
  // at 1 MiB. All cases share a drift. `factor` scales a block's seconds, by case and round.
  template <class Factor>
  store::Result grid(Factor factor, int rounds = 12) {
    const std::array of_cases{1.0, 1.0, 8.0, 8.0, 0.9, 8.8};
    store::Result result = sweep(rounds,
                                 {"message_size=1 MiB", "baseline_again at message_size=1 MiB", "nccl_algo=tree",
                                  "nccl_algo=tree at message_size=1 MiB"},
                                 [&](int c, int round) {
                                   return of_cases.at(static_cast<std::size_t>(c)) * factor(c, round) *
                                          (1 + 0.005 * round) * wobble(c, round);
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

// Failed blocks of the baseline at one size cost only the verdicts at that size.
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
  EXPECT_EQ(exit_code(summary), 4);
}

TEST_F(GridTest, EachSizeIsSettledByTheLooksForItself) {
  store::Result result = grid([](int c, int round) { return c == large_changed && round % 2 == 0 ? 0.85 : 1.0; });
  result.looks = "6,12";
  const Summary summary = summarise(result);
  EXPECT_EQ(summary.case_at(small_changed).settled_after, 6);
  EXPECT_EQ(summary.case_at(large_changed).settled_after, 0);
}

TEST_F(GridTest, SizesAloneAreNotCompared) {
  store::Result result = grid();
  std::erase_if(result.blocks, [](const store::ResultBlock& row) { return row.case_index > large; });
  result.cases.resize(large + 1);
  EXPECT_TRUE(sweeps_sizes_alone(result));
  EXPECT_FALSE(is_grid(result));
  EXPECT_EQ(declared_comparisons(result), 0);
}

// Returns a block's place in time in a sweep of four cases, whose order changes from round to round.
int place_of(const store::ResultBlock& block) {
  return 4 * block.round + (block.case_index * (block.round % 2 == 0 ? 1 : 3) + block.round / 2) % 4;
}

// A sweep of four cases, measured while the machine slows down by 20 %.
store::Result slowing(store::Result result) {
  for (std::size_t i = 0; i < result.blocks.size(); ++i) {
    const int place = place_of(result.blocks[i]);
    result.blocks[i].start_unix_s = 1.7e9 + 60.0 * place;
    for (float& seconds : result.step_seconds[i]) seconds *= 1 + 0.2f * static_cast<float>(place) / 48;
  }
  return result;
}

TEST_F(SummaryTest, AnUnknownIntervalIsRefused) {
  store::Result result = ordinary();
  result.interval = "oracle";
  EXPECT_THROW(summarise(result), Error);
}

TEST_F(SummaryTest, GuardsOfTheLevelWarn) {
  store::Result result = slowing(sweep(12, {"a=1", "b=1"}, wobble));
  EXPECT_FALSE(warns(summarise(result), "the case that ran before"));
  std::vector<std::size_t> order(result.blocks.size());
  for (std::size_t i = 0; i < order.size(); ++i) order[i] = i;
  std::ranges::sort(order, {}, [&](std::size_t i) { return place_of(result.blocks[i]); });
  for (std::size_t i = 1; i < order.size(); ++i) {
    if (result.blocks[order[i - 1]].case_index != 2) continue;
    for (float& seconds : result.step_seconds[order[i]]) seconds *= 1.01f;
  }
  EXPECT_TRUE(warns(summarise(result), "the case that ran before it; it is longest after a=1"));
}

TEST_F(SummaryTest, BlocksThatLieApartAreReported) {
  const store::Result result = slowing(sweep(
      12, {"a=1", "b=1"}, [](int c, int round) { return (c == 2 && round % 4 == 1 ? 1.3 : 1.0) * wobble(c, round); }));
  const Summary summary = summarise(result);
  EXPECT_TRUE(
      warns(summary, "3 of 48 blocks are too far off the others of their case to count, above all 3 of 12 of a=1"));
}

TEST_F(SummaryTest, ACaseWhoseStateIsADoubtfulMajorityIsNamed) {
  const Summary summary = summarise(slowing(sweep(5, {"a=1", "b=1"}, [](int c, int round) {
    const bool slow = (c == 2 && round % 2 == 0) || (c == 3 && round == 1);
    return (slow ? 1.5 : 1.0) * wobble(c, round);
  })));
  EXPECT_EQ(summary.cases[2].effect->verdict, Verdict::unresolved);
  EXPECT_TRUE(summary.cases[2].effect->two_states);
  EXPECT_TRUE(warns(summary, "some blocks of a=1 lie far off the rest"));
}

}  // namespace

}  // namespace harness::analysis
