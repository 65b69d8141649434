// What a fix adds on top of others, and its interaction with them, from blocks whose truth is known.
#include "analysis/questions.h"

#include <gtest/gtest.h>

#include <cmath>

#include "analysis/estimator.h"
#include "analysis/summary.h"
#include "base/random.h"
#include "support/sample_results.h"

namespace harness::analysis {
namespace {

// Cases: baseline, its copy, A, B, A + B, C, A + B + C, with these logarithms of their step times.
constexpr std::array truth{0.0, 0.0, -0.10, -0.20, -0.25, 0.05, -0.28};

store::Result sweep(std::uint64_t seed, int rounds = 12) {
  store::Result result;
  result.rounds = rounds;
  result.steps = 1;
  result.ranks = 1;
  result.interval = "level";
  result.state = store::RunState::complete;
  for (const char* name : {"baseline", "baseline_again", "A", "B", "A + B", "C", "A + B + C"}) {
    store::ResultCase row;
    row.name = name;
    row.status = store::CaseStatus::ok;
    row.ranks = 1;
    result.cases.push_back(row);
  }
  result.ladder = {{"A", 2, 2}, {"B", 3, 4}, {"C", 5, 6}};
  int index = 0;
  double level = 0;
  for (int round = 0; round < rounds; ++round) {
    for (int i = 0; i < 7; ++i, ++index) {
      level += 0.003 * philox_normal(seed, static_cast<std::uint64_t>(2 * index));
      store::ResultBlock block = test::samples::finished_block(round, i, (i * (1 + round % 6) + round) % 7);
      block.start_unix_s = 1e9 + 10 * index;
      result.blocks.push_back(block);
      const double noise = 0.005 * philox_normal(seed, static_cast<std::uint64_t>(2 * index + 1));
      const double log_seconds = truth.at(static_cast<std::size_t>(block.case_index)) + level + noise;
      result.step_seconds.push_back({static_cast<float>(std::exp(log_seconds))});
    }
  }
  return result;
}

TEST(Ladder, RecoversWhatEachFixAddsAndTheInteractions) {
  int outside = 0;
  constexpr int sweeps = 100;
  for (int seed = 1; seed <= sweeps; ++seed) {
    const Summary summary = summarise(sweep(static_cast<std::uint64_t>(seed)));
    ASSERT_EQ(summary.ladder.size(), 3u);
    EXPECT_EQ(summary.ladder[0].on_top->ratio, summary.cases[2].effect->ratio);
    EXPECT_FALSE(summary.ladder[0].interaction);
    bool all_inside = true;
    const auto check = [&](const std::optional<Effect>& effect, double expected) {
      ASSERT_TRUE(effect);
      EXPECT_NEAR(std::log(effect->ratio), expected, 0.02);
      all_inside = all_inside && effect->low <= std::exp(expected) && std::exp(expected) <= effect->high;
    };
    check(summary.ladder[1].on_top, -0.15);
    check(summary.ladder[1].interaction, 0.05);
    check(summary.ladder[2].on_top, -0.03);
    check(summary.ladder[2].interaction, -0.08);
    outside += all_inside ? 0 : 1;
  }
  // All nine intervals of a sweep hold together with 95 %; these are four of them.
  EXPECT_LE(outside, 10);
}

TEST(LadderOf, ItsComparisonsShareTheErrorOfTheSweep) {
  store::Result result = sweep(1);
  EXPECT_EQ(declared_comparisons(result), 5 + 4);
  const double with = summarise(result).cases[2].effect->high;
  result.ladder.clear();
  EXPECT_EQ(declared_comparisons(result), 5);
  EXPECT_LT(summarise(result).cases[2].effect->high, with);
}

TEST(LadderOf, AFixThatNcclDidNotFollowHasNoVerdict) {
  store::Result result = sweep(1);
  result.nccl_facts = {{3, "not honoured", "nccl_algo: Tree"}};
  const Summary summary = summarise(result);
  EXPECT_EQ(summary.ladder[1].on_top->verdict, Verdict::faster);  // of A + B against A: B alone has no part in it
  EXPECT_EQ(summary.ladder[1].interaction->verdict, Verdict::not_honoured);
}

TEST(Confidence, MoreOfItMakesWiderIntervals) {
  store::Result result = sweep(1);
  const double before = summarise(result).cases[2].effect->high;
  result.confidence = 0.999;
  EXPECT_GT(summarise(result).cases[2].effect->high, before);
}

}  // namespace
}  // namespace harness::analysis
