#include "evidence/training_log.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>
#include <vector>

namespace harness::test {
namespace {

std::vector<double> noisy(std::size_t n, double level, double deviation, unsigned seed) {
  std::mt19937 random(seed);
  std::normal_distribution<double> noise(0, deviation);
  std::vector<double> values;
  for (std::size_t i = 0; i < n; ++i) values.push_back(level * (1 + noise(random)));
  return values;
}

TEST(StepTimes, LeaveOutTheFirstTenthAndAtMostTen) {
  EXPECT_EQ(evidence::judge_steps(noisy(3, 1, 0.001, 1)).skipped, 1);
  EXPECT_EQ(evidence::judge_steps(noisy(12, 1, 0.001, 1)).skipped, 2);
  EXPECT_EQ(evidence::judge_steps(noisy(5000, 1, 0.001, 1)).skipped, 10);
}

TEST(StepTimes, FindNothingInNoise) {
  for (unsigned seed = 0; seed < 20; ++seed) {
    const auto steps = evidence::judge_steps(noisy(200, 2, 0.005, seed));
    EXPECT_FALSE(steps.jump || steps.drift);
    EXPECT_EQ(steps.spikes, 0);
    EXPECT_NEAR(steps.seconds, 2, 0.004);
    EXPECT_LE(steps.low, steps.seconds);
    EXPECT_GE(steps.high, steps.seconds);
  }
}

TEST(StepTimes, FindADriftInAVeryLongLogToo) {
  auto values = noisy(20'000, 1, 0.01, 4);
  for (std::size_t i = 0; i < values.size(); ++i) values[i] *= 1 + 0.08 * static_cast<double>(i) / 20'000;
  const auto steps = evidence::judge_steps(values);
  EXPECT_FALSE(steps.jump);
  ASSERT_TRUE(steps.drift);
  EXPECT_NEAR(*steps.drift, 0.077, 0.005);
}

TEST(StepTimes, NameThePeriodOfSpikes) {
  auto values = noisy(200, 1, 0.003, 5);
  for (std::size_t i = 25; i < 200; i += 25) values[i] = 3;
  const auto steps = evidence::judge_steps(values);
  EXPECT_EQ(steps.spikes, 7);
  EXPECT_EQ(steps.period, 25);
  EXPECT_NEAR(steps.lost, 14.0 / (183 + 21), 0.005);
  values[90] = 3;
  values[110] = 4;
  values[138] = 3;
  EXPECT_EQ(evidence::judge_steps(values).period, 0);
}

// Steps that take twice as long from some iteration on are no spikes, though fewer than half.
TEST(StepTimes, AChangeThatLastsIsNoSpike) {
  auto values = noisy(200, 1, 0.003, 6);
  for (std::size_t i = 120; i < 200; ++i) values[i] *= 2;
  const auto steps = evidence::judge_steps(values);
  ASSERT_TRUE(steps.jump);
  EXPECT_EQ(steps.jump->at, 120u);
  EXPECT_NEAR(steps.seconds, 2, 0.01);
  EXPECT_EQ(steps.spikes, 0);
}

}  // namespace
}  // namespace harness::test
