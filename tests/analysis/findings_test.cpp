#include <gtest/gtest.h>

#include "analysis/findings.h"
#include "support/sample_results.h"

namespace harness::analysis {

namespace {

TEST(Findings, MoreRanksAreNoImprovement) {
  const Findings both = find_all(test::samples::sweep({"ranks=2", "micro_batch_size=2"}, {1, 1, 0.5, 0.8}));
  ASSERT_NE(both.best(), nullptr);
  EXPECT_EQ(both.best()->name, "micro_batch_size=2");
  EXPECT_EQ(find_all(test::samples::sweep({"ranks=2"}, {1, 1, 0.5})).best(), nullptr);
}

TEST(Findings, NothingIsBestWhereTheControlMoved) {
  EXPECT_EQ(find_all(test::samples::unreliable()).best(), nullptr);
}

const config::Cost cost{2.5, "EUR", 1e9};

TEST(CostOfARun, FollowsFromTheMeasuredTokenRate) {
  const store::Result result = test::samples::sweep({"micro_batch_size=2", "precision=bf16"}, {1, 1, 0.8, 1.1});
  const Summary summary = summarise(result);
  const auto e = estimate_cost(result, summary, cost);
  ASSERT_TRUE(e);
  EXPECT_EQ(e->steps, 12 * 4);
  const double rate = summary.cases[0].tokens_per_second;
  EXPECT_DOUBLE_EQ(e->before.duration_s, 1e9 / rate);
  EXPECT_DOUBLE_EQ(e->before.price, 1e9 / rate / 3600 * 4 * 2.5);
  ASSERT_EQ(e->after.size(), 1u);  // the slower one saves nothing
  const CaseSaving& saving = e->after[0];
  EXPECT_EQ(saving.after.name, "micro_batch_size=2");
  EXPECT_NEAR(saving.after.duration_s / e->before.duration_s, 0.8, 0.001);
  EXPECT_NEAR(saving.gpus_recovered, 4 * (1 / 0.8 - 1), 0.01);
  EXPECT_NEAR(saving.saved_share, 0.2, 0.001);
  EXPECT_NEAR(saving.saved_run, 0.2 * e->before.price, 0.001 * e->before.price);
  EXPECT_NEAR(saving.saved_yearly, 0.2 * 4 * 8766 * 2.5, 100);
  EXPECT_LT(saving.saved_share_low, saving.saved_share);
  EXPECT_GT(saving.saved_share_high, saving.saved_share);
}

TEST(CostOfARun, FewerGpusAtTheSameRateAreASavingToo) {
  store::Result result = test::samples::sweep({"ranks=2"}, {1, 1, 0.95});
  const auto e = estimate_cost(result, summarise(result), cost);
  ASSERT_TRUE(e);
  ASSERT_EQ(e->after.size(), 1u);
  EXPECT_EQ(e->after[0].after.ranks, 2);
  EXPECT_NEAR(e->after[0].saved_share, 1 - 0.95 / 2, 0.001);
}

TEST(CostOfARun, NothingIsSavedThatIsNotProven) {
  const store::Result moved = test::samples::unreliable();
  const auto unreliable = estimate_cost(moved, summarise(moved), cost);
  ASSERT_TRUE(unreliable);
  EXPECT_TRUE(unreliable->after.empty());
  const store::Result empty;
  EXPECT_FALSE(estimate_cost(empty, summarise(empty), cost));
}

}  // namespace

}  // namespace harness::analysis
