#include "sim/jitter.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <utility>
#include <vector>

#include "support/errors.h"
#include "workloads/gpt/gpt.h"

namespace harness::sim {
namespace {

using program::Axis;
using program::OperationId;

TEST(JitterFactor, HasMeanOneAndTheDeviationThatIsAskedFor) {
  const config::Jitter jitter{0.3, 7};
  constexpr int count = 200'000;
  double sum = 0, squares = 0, logarithms = 0;
  for (int i = 0; i < count; ++i) {
    const double factor = jitter_factor(jitter, i % 5, i % 100, i / 100);
    EXPECT_GT(factor, 0);
    sum += factor;
    squares += factor * factor;
    logarithms += std::log(factor);
  }
  const double mean = sum / count, variance = std::log(1.09);
  EXPECT_NEAR(mean, 1, 0.005);
  EXPECT_NEAR(std::sqrt(squares / count - mean * mean), 0.3, 0.005);
  EXPECT_NEAR(logarithms / count, -variance / 2, 0.005);  // log-normal
}

TEST(JitterFactor, DependsOnAllThatItIsDrawnFor) {
  const config::Jitter jitter{0.03, 1};
  const double factor = jitter_factor(jitter, 0, 3, 4);
  EXPECT_EQ(jitter_factor(jitter, 0, 3, 4), factor);
  EXPECT_NE(jitter_factor({0.03, 2}, 0, 3, 4), factor);
  EXPECT_NE(jitter_factor(jitter, 1, 3, 4), factor);
  EXPECT_NE(jitter_factor(jitter, 0, 4, 4), factor);
  EXPECT_NE(jitter_factor(jitter, 0, 4, 3), factor);
  EXPECT_EQ(jitter_factor({0, 1}, 0, 3, 4), 1);
}

// A step of `data` replicas with computations of one length and communication that is free.
class DrawnSteps : public ::testing::Test {
 protected:
  static program::ProgramSet replicas(int data, int layers = 2) {
    const config::Model model{"custom", layers, 16, 4, 32, 8};
    config::Settings settings;
    settings.micro_batch_size = 1;
    settings.global_batch_size = data;
    settings.layout = {{Axis::data, data}};
    return gpt::programs(model, settings, settings.layout);
  }
  static std::vector<std::vector<Cost>> costs_of(const RankClasses& classes, Ticks communication = 0) {
    std::vector<std::vector<Cost>> costs;
    for (int c = 0; std::cmp_less(c, classes.list().size()); ++c) {
      std::vector<Cost>& list = costs.emplace_back();
      for (const program::Operation& op : classes.program(c).step)
        list.push_back({.alone = program::is_communication(op.action) ? communication : 1'000'000'000});
    }
    return costs;
  }
};

// One rank does one operation after the other: the step is their sum, and its deviation theirs by the root of how many.
TEST_F(DrawnSteps, OfOneRankAreTheSumsOfWhatWasDrawn) {
  const program::ProgramSet set = replicas(1);
  const RankClasses classes(set);
  const config::Jitter jitter{0.1, 3};
  const JitteredSteps drawn = draw_steps(classes, costs_of(classes), jitter);
  ASSERT_EQ(std::ssize(drawn.step_s), jitter_draws);
  for (int draw = 0; draw < jitter_draws; ++draw) {
    double sum_s = 0;
    for (OperationId id = 0; std::cmp_less(id, set.roles[0].step.size()); ++id) {
      if (!program::is_communication(set.roles[0].step[id].action)) sum_s += 1e-3 * jitter_factor(jitter, draw, 0, id);
    }
    EXPECT_NEAR(drawn.step_s[draw], sum_s, 1e-9);
  }
  EXPECT_GT(drawn.deviation_s(), 0);
}

// The replicas wait for the slowest of them: the more there are, the longer it takes.
TEST_F(DrawnSteps, OfManyReplicasAreThoseOfTheSlowest) {
  double before_s = 0;
  for (const int data : {1, 8, 64}) {
    const program::ProgramSet set = replicas(data);
    const RankClasses classes(set);
    const JitteredSteps drawn = draw_steps(classes, costs_of(classes), {0.1, 1});
    EXPECT_GT(drawn.mean_s(), 1.01 * before_s) << data;
    before_s = drawn.mean_s();
  }
}

TEST_F(DrawnSteps, OfMoreOperationsThanFitAreRefused) {
  const program::ProgramSet set = replicas(1 << 16, 8);
  const RankClasses classes(set);
  ASSERT_GT(std::ssize(set.roles[0].step) << 16, jitter_operations_most);
  EXPECT_THAT(test::error_of([&] {
                draw_steps(classes, costs_of(classes), {0.1, 1});
              }),
              ::testing::HasSubstr("leave jitter out"));
}

}  // namespace
}  // namespace harness::sim
