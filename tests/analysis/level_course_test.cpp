// The course of the machine's level: what it says of simulated sweeps whose truth is known. docs/method.md quotes the
// counts that the tests print.
#include "analysis/level_model.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstdio>

#include "noisy_sweep.h"

namespace harness::analysis {
namespace {

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

}  // namespace
}  // namespace harness::analysis
