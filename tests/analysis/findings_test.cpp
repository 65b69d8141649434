#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "analysis/findings.h"
#include "analysis/published.h"
#include "config/model.h"
#include "support/sample_results.h"

namespace harness::analysis {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::StartsWith;

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

TEST(Published, FindsStepsOfTheSameGpuAndPrecision) {
  const config::Model llama = *config::model_preset("llama3-8b");
  const auto said = [&](const std::string& gpu, double tflops, bool predicted = false) {
    return published_steps({llama, gpu, "bf16", 8, tflops, predicted}).text;
  };
  EXPECT_THAT(said("h100-sxm", 503), AllOf(HasSubstr(" TFLOP/s per GPU, median "),
                                           HasSubstr("like this step); yours: "
                                                     "503, "),
                                           HasSubstr("nearest: LLAMA3-8B")));
  EXPECT_THAT(said("h100-sxm", 503, true), HasSubstr("; yours, predicted: 503, "));
  EXPECT_THAT(said("h100-sxm", 5000), HasSubstr("above all of them"));
  EXPECT_THAT(said("h100-sxm", 50), HasSubstr("median: below"));
  EXPECT_THAT(said("l40s", 37), HasSubstr("nobody in configs/published has this GPU"));
  EXPECT_EQ(said("", 37), "");
  EXPECT_EQ(published_steps({{}, "h100-sxm", "bf16", 8, 37}).text, "");
}

TEST(Published, SaysHowTheNearestStepDiffers) {
  config::Model llama = *config::model_preset("llama3-8b");
  llama.sequence = 5000;
  EXPECT_THAT(published_steps({llama, "h100-sxm", "bf16", 24}).text,
              AllOf(HasSubstr(" (yours: 5000), "), HasSubstr(" (yours: 24) GPUs"), HasSubstr(" times the FLOP")));
}

TEST(Published, ALineIsOfStepsThatAreNear) {
  const config::Model llama = *config::model_preset("llama3-8b");
  EXPECT_THAT(published_line({llama, "h100-sxm", "bf16", 8}), StartsWith("published for h100-sxm in bf16: "));
  EXPECT_EQ(published_line({llama, "l40s", "bf16", 8}), "");
}

TEST(Published, FindsLargeCollectivesOfAsManyNodes) {
  constexpr std::int64_t gib = std::int64_t{1} << 30;
  EXPECT_THAT(published_busbw("b200", 1, "all_reduce", 2 * gib, 335.45e9), HasSubstr("yours is 50 % of it"));
  EXPECT_EQ(published_busbw("b200", 1, "all_reduce", 1000, 335e9), "");
  EXPECT_EQ(published_busbw("l40s", 1, "all_reduce", 2 * gib, 335e9), "");
}

}  // namespace
}  // namespace harness::analysis
