// The course of the machine's level: what it says of simulated sweeps whose truth is known. docs/method.md quotes the
// counts that the tests print.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstdio>

#include "analysis/level_model.h"
#include "analysis/summary.h"
#include "base/units.h"
#include "noisy_sweep.h"
#include "support/sample_results.h"

namespace harness::analysis {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

LevelCourse course_of(const SweepBlocks& sweep) {
  return level_course(std::span(&sweep, 1));
}

using test::simulated::Disturbance;
using test::simulated::NoisySweeps;
using test::simulated::Size;

constexpr Disturbance white = {.name = "white noise", .drift = 0, .set_up = 0.005};
constexpr Disturbance drifting = {.name = "drift of 1 % in 600 s"};

// Of `sweeps` sweeps in which nothing jumps, those with a jump.
int sweeps_with_jumps(const Disturbance& noise, int sweeps) {
  NoisySweeps noisy(noise, Size{}, 31);
  int with_jumps = 0;
  for (int i = 0; i < sweeps; ++i) with_jumps += course_of(noisy.draw()).jumps.empty() ? 0 : 1;
  std::printf("%s: jumps in %d of %d sweeps\n", noise.name, with_jumps, sweeps);
  return with_jumps;
}

TEST(LevelCourse, NoiseHasNoJumps) {
  EXPECT_EQ(sweeps_with_jumps(white, 300), 0);
}

TEST(LevelCourse, DriftHasAlmostNone) {
  EXPECT_LE(sweeps_with_jumps(drifting, 300), 6);
}

// Also after its place was moved to where it is sharpest.
TEST(LevelCourse, AJumpIsLargerThanItsBoundsWhereItIsReported) {
  constexpr Disturbance restless = {.name = "drift of 6 %", .drift = 0.06, .set_up = 0.02};
  NoisySweeps noisy(restless, Size{}, 33);
  std::size_t jumps = 0;
  for (int i = 0; i < 1000; ++i) {
    for (const LevelJump& jump : course_of(noisy.draw()).jumps) {
      ++jumps;
      EXPECT_GT(std::abs(jump.log_change), std::log1p(0.03));
      EXPECT_GT(std::abs(jump.log_change), 5 * jump.standard_error);
    }
  }
  EXPECT_GT(jumps, 0);
}

void add_step(SweepBlocks& sweep, int round, double log_change) {
  for (FinishedBlock& block : sweep.blocks) {
    if (block.round >= round) block.seconds *= std::exp(log_change);
  }
}

void expect_step_found(const Disturbance& noise, double least_share) {
  constexpr int sweeps = 300, round = 5;
  const double step = std::log1p(0.05);
  NoisySweeps noisy(noise, Size{}, 32);
  int found = 0;
  for (int i = 0; i < sweeps; ++i) {
    SweepBlocks sweep = noisy.draw();
    add_step(sweep, round, step);
    const LevelCourse course = course_of(sweep);
    for (const LevelJump& jump : course.jumps) {
      const int off = std::abs(course.blocks[jump.first].round - round);
      if (off <= 1 && std::abs(jump.log_change - step) < 0.01) {
        ++found;
        break;
      }
    }
  }
  std::printf("%s: a step of 5 %% found in %d of %d sweeps\n", noise.name, found, sweeps);
  EXPECT_GE(found, least_share * sweeps);
}

TEST(LevelCourse, AStepOfFivePercentIsFoundWhereItIs) {
  expect_step_found(white, 0.97);
  expect_step_found({.name = "slow drift", .drift = 0.003}, 0.9);
}

TEST(LevelCourse, ABriefDisturbanceIsNoJump) {
  NoisySweeps noisy(white, Size{}, 33);
  SweepBlocks sweep = noisy.draw();
  for (std::size_t i = 70; i < 73; ++i) sweep.blocks[i].seconds *= 1.5;
  const LevelCourse course = course_of(sweep);
  EXPECT_TRUE(course.jumps.empty());
  EXPECT_TRUE(course.blocks[71].set_aside);
  EXPECT_FALSE(course.blocks[80].set_aside);
}

TEST(LevelCourse, SessionsAreApart) {
  NoisySweeps noisy(white, Size{}, 34);
  SweepBlocks sweep = noisy.draw();
  for (FinishedBlock& block : sweep.blocks) {
    if (block.round < 6) continue;
    block.session = 1;
    block.seconds *= 1.2;
  }
  EXPECT_TRUE(course_of(sweep).jumps.empty());
}

// The level is the baseline's step at that moment, whatever the case.
TEST(LevelCourse, TheLevelIsTheBaselinesTime) {
  NoisySweeps noisy({.drift = 0, .set_up = 0.002}, Size{}, 35);
  SweepBlocks sweep = noisy.draw();
  for (FinishedBlock& block : sweep.blocks) {
    block.seconds *= 0.2;
    if (block.case_index == 3) block.seconds *= 1.5;
  }
  const LevelCourse course = course_of(sweep);
  ASSERT_EQ(course.blocks.size(), sweep.blocks.size());
  for (std::size_t i = 0; i < course.blocks.size(); ++i) {
    EXPECT_NEAR(course.blocks[i].level_seconds, 0.2, 0.004);
    EXPECT_NEAR(std::exp(course.blocks[i].machine), 0.2, 0.004);
    EXPECT_EQ(course.blocks[i].index, sweep.blocks[i].index);
  }
}

TEST(LevelCourse, WithoutABaselineThereIsNone) {
  NoisySweeps noisy(white, Size{}, 36);
  SweepBlocks sweep = noisy.draw();
  std::erase_if(sweep.blocks, [](const FinishedBlock& block) { return block.case_index == 0; });
  EXPECT_TRUE(course_of(sweep).blocks.empty());
  EXPECT_TRUE(course_of({}).blocks.empty());
  EXPECT_TRUE(std::isnan(level_drift({})));
}

TEST(LevelCourse, DriftIsFromTheFirstThirdToTheLast) {
  NoisySweeps noisy({.drift = 0, .set_up = 0.002, .trend = 0.3}, Size{}, 37);
  EXPECT_NEAR(level_drift(course_of(noisy.draw())), 0.2, 0.01);
}

constexpr double afternoon = 1767364200;  // 2026-01-02 14:30:00 UTC

// A quiet sweep of 12 rounds of 4 cases, a block every 30 s, on two nodes of 8 cores.
store::Result quiet_sweep() {
  store::Result result = test::samples::sweep({"micro_batch_size=2", "micro_batch_size=4"}, {1, 1, 0.9, 0.8});
  for (std::size_t i = 0; i < result.blocks.size(); ++i) {
    result.blocks[i].start_unix_s = afternoon + 30 * static_cast<double>(i);
    for (float& seconds : result.step_seconds[i])
      seconds /= 1 + 0.02F * static_cast<float>(result.blocks[i].round % 4);  // what the sample adds
    result.conditions.push_back({.load = 1, .steal_share = 0, .foreign_cores = 0.1, .busiest_host = "node0"});
  }
  for (int rank = 0; rank < 4; ++rank)
    result.rank_table.push_back({rank, rank % 2, rank / 2, rank < 2 ? "node0" : "node1", "", 8, 4, 1e9});
  return result;
}

std::vector<std::string> warnings_of(const store::Result& result) {
  std::vector<std::string> warnings;
  machine_warnings(result, summarise(result), warnings);
  return warnings;
}

void slow_down(store::Result& result, std::size_t first, std::size_t end, float factor) {
  for (std::size_t i = first; i < end; ++i) {
    for (float& seconds : result.step_seconds[i]) seconds *= factor;
  }
}

TEST(MachineWarnings, AQuietMachineHasNone) {
  EXPECT_THAT(warnings_of(quiet_sweep()), IsEmpty());
  store::Result silent = quiet_sweep();
  silent.conditions.assign(silent.blocks.size(), {});
  EXPECT_THAT(warnings_of(silent), IsEmpty());
  silent.conditions.clear();
  EXPECT_THAT(warnings_of(silent), IsEmpty());
}

TEST(MachineWarnings, OthersAreNamedWithNumbersAndTheNode) {
  store::Result result = quiet_sweep();
  for (std::size_t i = 20; i < 26; ++i) {
    result.conditions[i].foreign_cores = i == 22 ? 1.4 : 0.7;
    result.conditions[i].busiest_host = "node1";
  }
  const std::vector<std::string> warnings = warnings_of(result);
  ASSERT_THAT(warnings, SizeIs(1));
  EXPECT_THAT(warnings[0], HasSubstr("other processes kept cores busy in 6 of 48 blocks, at most 1.4 of 8 cores, on "
                                     "node1 at 14:41:00 UTC (round 6)"));
  result.conditions[23].foreign_cores = result.conditions[24].foreign_cores = 0.3;  // 4 of 48 blocks are few
  EXPECT_THAT(warnings_of(result), IsEmpty());
}

TEST(MachineWarnings, StolenTimeIsNamed) {
  store::Result result = quiet_sweep();
  for (std::size_t i = 0; i < 10; ++i) result.conditions[i].steal_share = 0.03;
  result.conditions[4].steal_share = 0.25;
  const std::vector<std::string> warnings = warnings_of(result);
  ASSERT_THAT(warnings, SizeIs(1));
  EXPECT_THAT(warnings[0], HasSubstr("more than 2 % of its CPU time to other guests in 10 of 48 blocks, at most 25 %, "
                                     "at 14:32:00 UTC (round 2)"));
}

TEST(MachineWarnings, AJumpIsNamedWithItsMoment) {
  store::Result result = quiet_sweep();
  slow_down(result, 24, 48, 1.12F);
  for (std::size_t i = 24; i < 48; ++i) result.conditions[i].foreign_cores = 0.38;  // below 5 %: no warning of its own
  const std::vector<std::string> warnings = warnings_of(result);
  ASSERT_THAT(warnings, SizeIs(1));
  EXPECT_THAT(warnings[0], HasSubstr("the machine became 12"));
  EXPECT_THAT(warnings[0],
              HasSubstr(" % slower at 14:42:00 UTC (round 7), when other processes went from 0.1 to 0.4 "));
  EXPECT_THAT(warnings[0], HasSubstr("Look at what started or ended then"));
}

TEST(MachineWarnings, DriftIsNamedWhereNoJumpSaysIt) {
  store::Result result = quiet_sweep();
  for (std::size_t i = 0; i < 48; ++i) slow_down(result, i, i + 1, 1 - 0.01F * static_cast<float>(i));
  const std::vector<std::string> warnings = warnings_of(result);
  ASSERT_FALSE(warnings.empty());
  EXPECT_THAT(warnings.back(), HasSubstr(" % faster from the first third of the sweep to the last"));
}

TEST(ClockText, IsTheTimeOfDay) {
  EXPECT_EQ(clock_text(afternoon + 130), "14:32:10");
  EXPECT_EQ(clock_text(-1), "?");
  EXPECT_EQ(clock_text(1e300), "?");
  EXPECT_EQ(clock_text(std::nan("")), "?");
}

}  // namespace
}  // namespace harness::analysis
