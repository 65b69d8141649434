// A summary whose verdicts rest on the level of the machine: what is declared, and what the guards say.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "analysis/estimator.h"
#include "analysis/summary.h"
#include "base/error.h"
#include "summary_fixture.h"

namespace harness::analysis {
namespace {

using ::testing::HasSubstr;

// When a block of four cases runs: a minute apart, in an order that changes from round to round.
int place_of(const store::ResultBlock& block) {
  return 4 * block.round + (block.case_index * (block.round % 2 == 0 ? 1 : 3) + block.round / 2) % 4;
}

// A sweep of four cases, measured while the machine slows down by 20 %.
store::Result declared_level(store::Result result) {
  result.interval = "level";
  for (std::size_t i = 0; i < result.blocks.size(); ++i) {
    const int place = place_of(result.blocks[i]);
    result.blocks[i].start_unix_s = 1.7e9 + 60.0 * place;
    for (float& seconds : result.step_seconds[i]) seconds *= 1 + 0.2f * static_cast<float>(place) / 48;
  }
  return result;
}

TEST_F(SummaryTest, TheLevelOfTheMachineDecides) {
  const Summary level = summarise(declared_level(ordinary()));
  ASSERT_EQ(level.levels.size(), 1u);
  EXPECT_EQ(level.cases[2].effect->verdict, Verdict::faster);
  EXPECT_NEAR(level.cases[2].effect->ratio, 0.8, 0.005);
  EXPECT_EQ(level.cases[2].effect->rounds, 12);
  EXPECT_EQ(level.cases[0].judgement.reason, Reason::baseline);
}

TEST_F(SummaryTest, AnUnknownIntervalIsRefused) {
  store::Result result = ordinary();
  result.interval = "oracle";
  EXPECT_THROW(summarise(result), Error);
}

TEST_F(SummaryTest, GuardsOfTheLevelWarn) {
  store::Result result = declared_level(
      sweep(12, {"a=1", "b=1"}, [](int c, int round) { return 1 + 0.001 * ((7 * c + 3 * round) % 5 - 2); }));
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
  const store::Result result = declared_level(sweep(12, {"a=1", "b=1"}, [](int c, int round) {
    return (c == 2 && round % 4 == 1 ? 1.3 : 1.0) * (1 + 0.001 * ((7 * c + 3 * round) % 5 - 2));
  }));
  const Summary summary = summarise(result);
  EXPECT_TRUE(warns(summary, "3 of 12 blocks of a=1 lie apart"));
  EXPECT_FALSE(warns(summary, "too far off the others of their case"));  // 3 of 48
}

TEST_F(SummaryTest, ACaseWhoseStateIsADoubtfulMajorityIsNamed) {
  const Summary summary = summarise(declared_level(sweep(5, {"a=1", "b=1"}, [](int c, int round) {
    const bool slow = (c == 2 && round % 2 == 0) || (c == 3 && round == 1);
    return (slow ? 1.5 : 1.0) * (1 + 0.001 * ((7 * c + 3 * round) % 5 - 2));
  })));
  EXPECT_EQ(summary.cases[2].effect->verdict, Verdict::unresolved);
  EXPECT_TRUE(summary.cases[2].effect->two_states);
  EXPECT_TRUE(warns(summary, "some blocks of a=1 lie far off the rest"));
}

TEST_F(SummaryTest, AControlThatMovedIsNamedAsNoReference) {
  const store::Result result = declared_level(sweep(12, {"a=1", "b=1"}, [](int c, int round) {
    return (c == 1 ? 1.05 : 1.0) * (1 + 0.001 * ((7 * c + 3 * round) % 5 - 2));
  }));
  const Summary summary = summarise(result);
  EXPECT_TRUE(summary.unreliable);
  EXPECT_NEAR(summary.cases[2].effect->ratio, 1, 0.01);
  EXPECT_TRUE(warns(summary, "baseline_again is +5.0 % off the baseline, so it is no reference"));
}

}  // namespace
}  // namespace harness::analysis
