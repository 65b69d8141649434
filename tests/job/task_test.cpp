#include "job/job.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>

#include "base/text.h"

namespace harness::job {
namespace {

// A hiccup in fewer than half of the steps is never kept, and every rank keeps the same step.
TEST(ChooseStep, KeepsTheMedianOfAnyNumberOfSteps) {
  std::mt19937 random(1);
  for (int trial = 0; trial < 200; ++trial) {
    const std::size_t n = 1 + random() % 9;
    std::vector<double> step_s(n);
    for (double& s : step_s) s = 1 + 1e-3 * static_cast<double>(random() % 100);
    for (std::size_t hiccup = 0; 2 * (hiccup + 1) <= n; ++hiccup) step_s[hiccup] = 100;
    std::ranges::shuffle(step_s, random);
    TimelineSamples samples;
    for (std::size_t i = 0; i < n; ++i) {
      samples.offered.emplace_back().step_s = 0.5 * step_s[i];  // of this rank, which is not the slowest
      samples.offered.back().loading_s = static_cast<double>(i);
    }
    choose_step(samples, step_s);
    const double kept = step_s[static_cast<std::size_t>(samples.loading_s)];
    EXPECT_EQ(samples.step_s, 0.5 * kept);
    EXPECT_LT(kept, 2);
    const auto below = std::ranges::count_if(step_s, [&](double s) { return s < kept; });
    const auto above = std::ranges::count_if(step_s, [&](double s) { return s > kept; });
    EXPECT_LE(std::max(below, above), std::ssize(step_s) / 2);
    EXPECT_EQ(samples.all.count, static_cast<int>(n));
    EXPECT_EQ(samples.all.fastest_s, std::ranges::min(step_s));
    EXPECT_EQ(samples.all.slowest_s, std::ranges::max(step_s));
    EXPECT_TRUE(samples.offered.empty());
  }
}

TEST(ChooseStep, ARankThatOffersOtherStepsIsAnError) {
  TimelineSamples samples;
  samples.offered.resize(2);
  EXPECT_THROW(choose_step(samples, std::vector<double>{1, 2, 3}), Error);
  EXPECT_THROW(choose_step(samples, {}), Error);
}

}  // namespace
}  // namespace harness::job
