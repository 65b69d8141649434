#include "evidence/training_log.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>
#include <vector>

#include "base/error.h"
#include "evidence/answer.h"
#include "support/temporary_folder.h"

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

TEST(StepTimes, FindAJumpAndCountFromIt) {
  auto values = noisy(100, 1, 0.003, 3);
  for (std::size_t i = 60; i < 100; ++i) values[i] *= 1.06;
  const auto steps = evidence::judge_steps(values);
  ASSERT_TRUE(steps.jump);
  EXPECT_EQ(steps.jump->at, 60u);
  EXPECT_NEAR(steps.jump->share(), 0.06, 0.005);
  EXPECT_NEAR(steps.seconds, 1.06, 0.005);
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

// Whatever the framework: a time that is no time is said, and neither counts nor makes the log unknown.
TEST(TrainingLog, TimesThatAreNoTimesAreSaid) {
  struct Framework {
    const char *name, *line, *good;
  };
  const Framework frameworks[] = {
      {"megatron-lm", " iteration {0}/ 400 | consumed samples: 9 | elapsed time per iteration (ms): {1} | lm loss: 1",
       "2000.0"},
      {"megatron-lm", " iteration {0}/ 400 | elapsed time per iteration (s): {1} | learning rate: 1E-4 |", "2.0"},
      {"nemo 2", "Training epoch 0, iteration {0}/99 | lr: 1 | train_step_timing in s: {1}", "2.0"},
      {"torchtitan",
       "[titan] 2026-01-02 10:00:00,000 - root - INFO - step: {0}  loss: 8.1  memory: 40GiB  tps: {1}  tflops: 1  mfu: "
       "3%",
       "6,250"},
      {"deepspeed",
       "[Rank 0] epoch=0/micro_step=1/global_step={0}, RunningAvgSamplesPerSec=9.0, CurrSamplesPerSec={1}, x", "96.0"},
      {"deepspeed", "steps: {0} loss: 2.1 iter time (s): {1} samples/sec: 415.1", "1.2"},
      {"nanogpt", "iter {0}: loss 4.1234, time {1}ms, mfu 34.11%", "248.10"},
      {"nanotron", "iteration: {0} / 500 | elapsed_time_per_iteration_ms: {1} | lm_loss: 1", "2000"},
      {"maxtext", "completed step: {0}, seconds: {1}, TFLOP/s/device: 410.2, Tokens/s/device: 0.0", "4.1"},
      {"llm-foundry / composer", "[batch={0}/500]:\n\t Train throughput/batches_per_sec: {1}", "0.5"},
  };
  const TemporaryFolder scratch;
  for (const Framework& framework : frameworks) {
    const auto answer_to = [&](int lines, int bad_ones, const char* bad) {
      std::string text;
      for (int i = 1; i <= lines; ++i)
        text += fmt::format(fmt::runtime(framework.line), i, i > lines - bad_ones ? bad : framework.good) + "\n";
      return evidence::read_files({scratch.write("log", text)}, {}).front();
    };
    EXPECT_THAT(answer_to(8, 0, "").problems, testing::IsEmpty()) << framework.name;
    for (const char* bad : {"nan", "NaN", "-nan", "inf", "-inf", "Infinity", "1e999"}) {
      const evidence::Answer none = answer_to(5, 5, bad), some = answer_to(8, 2, bad);
      EXPECT_EQ(none.facts[1].second, evidence::Value(framework.name)) << bad;
      EXPECT_THAT(none.headline, testing::StartsWith("no step time: 5 progress lines")) << framework.name << bad;
      EXPECT_THAT(some.headline, testing::Not(testing::HasSubstr("no step time"))) << framework.name << bad;
      EXPECT_THAT(some.problems, testing::ElementsAre(testing::StartsWith("2 progress lines have a time that is nan")))
          << framework.name << bad;
    }
  }
}

}  // namespace
}  // namespace harness::test
