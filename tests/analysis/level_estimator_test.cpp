#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <array>
#include <cmath>
#include <fstream>
#include <functional>
#include <string>
#include <vector>

#include "analysis/estimator.h"
#include "analysis/level_model.h"
#include "analysis/verdict.h"
#include "base/random.h"
#include "support/paths.h"

namespace harness::analysis {
namespace {

using nlohmann::json;

constexpr int columns = 5;  // the baseline, its copy and three cases
constexpr double e = 0.01;

// Blocks one minute apart, in an order that changes from round to round; log_seconds(case, index of the block).
SweepBlocks sweep(int rounds, const std::function<double(int, int)>& log_seconds) {
  constexpr std::array strides{1, 2, 3, 4};
  SweepBlocks out{{}, 0, 1};
  for (int i = 0; i < rounds * columns; ++i) {
    const int round = i / columns, which = (i * strides.at(static_cast<std::size_t>(round) % 4) + round / 4) % columns;
    out.blocks.push_back({.index = static_cast<std::size_t>(i),
                          .case_index = which,
                          .round = round,
                          .steps_unix_s = 1.7e9 + 60.0 * i,
                          .seconds = std::exp(log_seconds(which, i))});
  }
  return out;
}

double noise(int block) {
  return 0.002 * philox_normal(11, static_cast<std::uint64_t>(block));
}

std::vector<Question> questions() {
  std::vector<Question> all{{1, family_alpha(1, 0.95), e}};
  for (int i = 2; i < columns; ++i) all.push_back({i, family_alpha(columns - 2, 0.95), e});
  return all;
}

double half_width(const Estimate& estimate) {
  return (estimate.log_ratio.high - estimate.log_ratio.low) / 2;
}

bool has_interval(const Estimate& estimate) {
  return std::isfinite(estimate.log_ratio.low) && std::isfinite(estimate.log_ratio.high);
}

TEST(LevelEstimator, TakesTheMachinesLevelOutOfEveryBlock) {
  const auto drifting = [](int which, int i) {
    return (which == 2 ? -0.05 : 0.0) + 0.1 * std::sin(i / 15.0) + noise(i);
  };
  const SweepBlocks blocks = sweep(12, drifting);
  const SweepEstimate level = estimate_level(blocks, questions());
  const SweepEstimate pairs = estimate_mean_pairs(blocks, questions());
  ASSERT_TRUE(level.level);
  EXPECT_NEAR(level.answers[1].log_ratio.center, -0.05, 0.005);
  EXPECT_EQ(level.answers[1].log_ratio.n, 12);
  EXPECT_LT(half_width(level.answers[1]), half_width(pairs.answers[1]) / 3);
  EXPECT_LT(level.level->time_constant_s.value_or(300), 300);
  EXPECT_EQ(level.level->blocks, 60);
}

// After the fallback, the level is the mean of a round, for which no time constant was chosen.
TEST(LevelEstimator, BothBaselinesAreTheReference) {
  // The copy is 0.4 % slower, not proven beyond 1 %, so the reference is half-way between the two.
  const auto apart = [](int which, int i) { return (which == 1 ? 0.004 : 0.0) + noise(i); };
  const SweepEstimate estimate = estimate_level(sweep(12, apart), questions());
  EXPECT_FALSE(estimate.level->baseline_left);
  EXPECT_NEAR(estimate.answers[0].log_ratio.center, 0.004, 0.002);
  EXPECT_NEAR(estimate.answers[2].log_ratio.center, -0.002, 0.001);
}

TEST(LevelEstimator, FewRoundsArePairedWithBothBaselines) {
  const SweepBlocks blocks = sweep(4, [](int which, int i) { return (which == 2 ? 0.3 : 0.0) + noise(i); });
  const SweepEstimate estimate = estimate_level(blocks, questions());
  EXPECT_FALSE(estimate.level);
  std::vector<double> log_ratios;
  for (int round = 0; round < 4; ++round) {
    const auto log_of = [&](int which) {
      const auto found = std::ranges::find_if(
          blocks.blocks, [&](const FinishedBlock& b) { return b.round == round && b.case_index == which; });
      return std::log(found->seconds);
    };
    log_ratios.push_back(log_of(2) - (log_of(0) + log_of(1)) / 2);
  }
  const ConfidenceInterval expected = mean_interval(log_ratios, family_alpha(3, 0.95));
  EXPECT_NEAR(estimate.answers[1].log_ratio.center, expected.center, 1e-12);
  EXPECT_NEAR(estimate.answers[1].log_ratio.low, expected.low, 1e-12);
  EXPECT_EQ(estimate.answers[1].log_ratio.n, 4);
}

TEST(LevelEstimator, ACaseWithFewBlocksHasANumberAndNoInterval) {
  SweepBlocks blocks = sweep(12, [](int which, int i) { return (which == 3 ? 0.3 : 0.0) + noise(i); });
  std::erase_if(blocks.blocks, [](const FinishedBlock& b) { return b.case_index == 3 && b.round >= 4; });
  std::erase_if(blocks.blocks, [](const FinishedBlock& b) { return b.case_index == 4; });
  const SweepEstimate estimate = estimate_level(blocks, questions());
  EXPECT_TRUE(has_interval(estimate.answers[1]));
  EXPECT_EQ(estimate.answers[2].log_ratio.n, 4);
  EXPECT_NEAR(estimate.answers[2].log_ratio.center, 0.3, 0.005);
  EXPECT_FALSE(has_interval(estimate.answers[2]));
  EXPECT_EQ(estimate.answers[3].log_ratio.n, 0);
  EXPECT_TRUE(std::isnan(estimate.answers[3].log_ratio.center));
}

// Three of a case's five blocks are slow, as are a few of other cases: the other two may be the undisturbed ones.
TEST(LevelEstimator, AMajorityThatChanceMayHaveDisturbedProvesNothing) {
  const auto states = [](int which, int i) {
    const int round = i / columns;
    const bool slow = (which == 2 && round % 2 == 0) || (which == 3 && round == 1) || (which == 0 && round == 3);
    return (slow ? 0.4 : 0.0) + noise(i);
  };
  const SweepEstimate early = estimate_level(sweep(5, states), questions());
  EXPECT_TRUE(early.answers[1].two_states);
  EXPECT_LT(early.answers[1].log_ratio.low, 0);
  EXPECT_NEAR(early.answers[1].log_ratio.high, 0.4, 0.05);
  EXPECT_GT(early.answers[1].rounds_needed, 5);
  EXPECT_FALSE(early.answers[3].two_states);
  // With many more rounds and blocks disturbed as often, by chance, the majority is right.
  const auto rare = [](int which, int i) { return (which == 2 && i / columns % 3 == 0 ? 0.4 : 0.0) + noise(i); };
  const SweepEstimate late = estimate_level(sweep(24, rare), questions());
  EXPECT_FALSE(late.answers[1].two_states);
  EXPECT_NEAR(late.answers[1].log_ratio.high, 0, e);
}

TEST(LevelEstimator, BlocksApartReachAsFarAsTheyLie) {
  // Two of five lie below the others in group 1; none elsewhere.
  const std::vector<BlocksApart> groups{{.blocks = 10}, {.blocks = 5, .below = 2, .below_off = -0.3}, {.blocks = 5}};
  const double share = 3.0 / 22, tail = binomial_upper_tail(5, 3, share);
  const Reach reach = reach_to_apart(groups, 1, 1.99 * tail);
  EXPECT_EQ(reach.low, -0.3);
  EXPECT_EQ(reach.high, 0);
  EXPECT_FALSE(reach_to_apart(groups, 1, 2.01 * tail).any());
  EXPECT_FALSE(reach_to_apart(groups, 2, 1.99 * tail).any());
  // Faster blocks of the reference make the compared case slower.
  const std::vector<BlocksApart> of_reference{groups[1], groups[2]};
  EXPECT_EQ(reach_to_apart(of_reference, 1, tail).high, 0.3);
  const int rounds = rounds_to_tell_apart(groups, 1, 1.99 * tail, 5);
  EXPECT_GT(rounds, 5);
  EXPECT_LT(rounds, 20);
}

TEST(LevelEstimator, PausesAndMissingClocksDoNoHarm) {
  SweepBlocks blocks = sweep(12, [](int, int i) { return -1 + noise(i); });
  const double usual = half_width(estimate_level(blocks, questions()).answers[1]);
  // One block with a day's pause before and after it; blocks take a minute.
  for (FinishedBlock& block : blocks.blocks) {
    block.steps_unix_s += 86400.0 * ((block.index >= 30) + (block.index >= 31));
  }
  EXPECT_NEAR(half_width(estimate_level(blocks, questions()).answers[1]), usual, 0.3 * usual);
  for (FinishedBlock& block : blocks.blocks) block.steps_unix_s = 0;
  EXPECT_NEAR(half_width(estimate_level(blocks, questions()).answers[1]), usual, 0.3 * usual);
}

TEST(LevelEstimator, RoundsNeededBringTheHalfWidthThere) {
  const SweepBlocks blocks = sweep(6, [](int which, int i) { return (which == 2 ? 0.012 : 0.0) + noise(i); });
  const Estimate now = estimate_level(blocks, questions()).answers[1];
  ASSERT_GT(now.rounds_needed, 6);
  ASSERT_LT(now.rounds_needed, max_rounds);
  LevelFit fit;
  fit.groups = {{.blocks = 12, .variance = 4e-6, .degrees = 20}, {.blocks = 6, .variance = 4e-6, .degrees = 10}};
  const double alpha = family_alpha(3, 0.95), distance = 0.001;
  const int needed = level_rounds_to_reach(distance, fit, 1, alpha);
  const auto half_width_of = [&](int rounds) {
    const double share = rounds / 6.0, a = 4e-6 / rounds, b = 4e-6 / (2.0 * rounds);
    const double degrees = (a + b) * (a + b) / (a * a / 10 + b * b / 20) * share;
    return student_t_quantile(1 - alpha / 2, degrees) * std::sqrt(a + b);
  };
  EXPECT_LT(half_width_of(needed), distance);
  EXPECT_GE(half_width_of(needed - 1), distance);
}

// Compares the level model with a second implementation: tests/analysis/data/README.md.

const json& sweeps() {
  static const json all = json::parse(std::ifstream(test::source_dir() + "/tests/analysis/data/level_sweeps.json"));
  return all;
}

// Case 0 is the baseline and 1 its copy, in the baseline's group unless `copy_apart`.
std::vector<LevelBlock> blocks_of(const json& sweep, bool copy_apart) {
  std::vector<LevelBlock> blocks;
  for (std::size_t i = 0; i < sweep["y"].size(); ++i) {
    const int case_index = sweep["case"][i];
    LevelBlock& block = blocks.emplace_back();
    block.log_seconds = sweep["y"][i];
    block.steps_unix_s = sweep["t"][i];
    block.group = copy_apart ? case_index : std::max(case_index - 1, 0);
    block.case_index = case_index;
    block.round = sweep["round"][i];
    block.session = sweep["session"][i];
  }
  return blocks;
}

int set_aside(const LevelFit& fit) {
  int all = 0;
  for (const LevelGroup& group : fit.groups) all += group.set_aside;
  return all;
}

void expect_equal(const json& expected, const std::vector<LevelBlock>& given, double alpha) {
  constexpr double tolerance = 1e-9;
  std::vector<LevelBlock> blocks = keep_with_neighbour(given);
  ASSERT_EQ(blocks.size(), given.size());
  LevelFit fit = fit_level(blocks);
  const KindEffect carry = find_carry_over(blocks, fit);
  EXPECT_NEAR(carry.p_value, expected["carry_p"], 1e-7);
  EXPECT_EQ(carry.found(), expected["carry_p"].get<double>() < 0.05);
  if (carry.found()) {
    blocks = keep_with_round(blocks);
    fit = fit_level(blocks, LevelSource::round);
  } else if (fit.common_variance > time_resolution * time_resolution) {  // else all decays predict alike
    const auto decay = std::ranges::find(NeighbourLevel::decays, expected["decay"].get<double>());
    ASSERT_NE(decay, NeighbourLevel::decays.end());
    EXPECT_EQ(fit.time_constant_s, NeighbourLevel(blocks).time_constant_s(decay - NeighbourLevel::decays.begin()));
  }
  EXPECT_EQ(set_aside(fit), expected["aside"].get<int>());
  EXPECT_NEAR(fit.common_variance, expected["common"], tolerance);
  const SerialCorrelation serial = find_serial_correlation(blocks, fit);
  EXPECT_EQ(serial.pairs, expected["pairs"].get<int>());
  EXPECT_NEAR(serial.correlation, expected["correlation"], 1e-7);
  EXPECT_NEAR(serial.widening(), expected["widening"], 1e-7);
  ASSERT_EQ(fit.groups.size(), expected["effect"].size() + 1);
  for (std::size_t i = 0; i < expected["effect"].size(); ++i) {
    const ConfidenceInterval interval = level_interval(fit, static_cast<int>(i) + 1, alpha, serial.widening());
    EXPECT_NEAR(interval.center, expected["effect"][i], tolerance);
    EXPECT_NEAR(interval.low, expected["low"][i], tolerance);
    EXPECT_NEAR(interval.high, expected["high"][i], tolerance);
  }
}

TEST(LevelReference, CasesAgainstBothBaselines) {
  ASSERT_GE(sweeps().size(), 50u);
  for (const json& sweep : sweeps()) {
    SCOPED_TRACE(sweep["name"].get<std::string>());
    const auto cases = static_cast<int>(sweep["cases"]["effect"].size());
    expect_equal(sweep["cases"], blocks_of(sweep, false), family_alpha(cases, 0.95));
  }
}

TEST(LevelReference, TheControlAlone) {
  for (const json& sweep : sweeps()) {
    SCOPED_TRACE(sweep["name"].get<std::string>());
    expect_equal(sweep["control"], blocks_of(sweep, true), family_alpha(1, 0.95));
  }
}

// The fixture must trigger every guard.
TEST(LevelReference, TheSweepsMeetTheGuards) {
  int carried = 0, widened = 0, aside = 0;
  for (const json& sweep : sweeps()) {
    carried += sweep["cases"]["carry_p"].get<double>() < 0.05;
    widened += sweep["cases"]["widening"].get<double>() > 1;
    aside += sweep["cases"]["aside"].get<int>() > 0;
  }
  EXPECT_GE(carried, 5);
  EXPECT_GE(widened, 2);
  EXPECT_GE(aside, 4);
}

}  // namespace
}  // namespace harness::analysis
