#include "analysis/statistics.h"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "base/random.h"

namespace harness::analysis {
namespace {

TEST(Heterogeneity, TheStatisticIsTheOneOfTheHeader) {
  // By hand: w = 1, 4, 4; W = 9; m = (0 + 4 + 12) / 9 = 16/9; Q = 256/81 + 4 * 49/81 + 4 * 121/81 = 936/81.
  // L = (8/9)^2 / 10 + 2 (5/9)^2 / 20 = 64/810 + 25/810 = 89/810; F = 468/81 / (1 + 2/8 L).
  const std::vector<OwnEstimate> three{{0, 1, 10}, {1, 0.5, 20}, {3, 0.5, 20}};
  const double l = 89.0 / 810, f = 468.0 / 81 / (1 + l / 4);
  EXPECT_NEAR(heterogeneity_p(three).value(), f_upper_tail(f, 2, 8 / (3 * l)), 1e-12);
}

TEST(Heterogeneity, OfTwoItIsWelchsT) {
  // t = 2 / sqrt(0.5² + 0.8²), with Satterthwaite's degrees of freedom; F = t².
  const std::vector<OwnEstimate> two{{1, 0.5, 7}, {3, 0.8, 11}};
  const double variance = 0.25 + 0.64, degrees = variance * variance / (0.0625 / 7 + 0.4096 / 11);
  EXPECT_NEAR(heterogeneity_p(two).value(), f_upper_tail(4 / variance, 1, degrees), 1e-12);
}

TEST(Heterogeneity, WithExactErrorsItIsCochransQ) {
  const std::vector<OwnEstimate> exact{{0, 1, 1e12}, {1, 1, 1e12}, {4, 1, 1e12}};
  const double q = 26.0 / 3;  // about the mean 5/3; chi-squared with 2 degrees of freedom: exp(-q / 2)
  EXPECT_NEAR(heterogeneity_p(exact).value(), std::exp(-q / 2), 1e-4);
}

TEST(Heterogeneity, WhatHasNoErrorOfItsOwnDoesNotCount) {
  const OwnEstimate good{1, 0.5, 7}, other{3, 0.8, 11};
  EXPECT_FALSE(heterogeneity_p(std::vector<OwnEstimate>{good}));
  for (const OwnEstimate bad :
       {OwnEstimate{2, 0, 7}, OwnEstimate{2, NAN, 7}, OwnEstimate{2, 0.5, NAN}, OwnEstimate{NAN, 0.5, 7}}) {
    EXPECT_FALSE(heterogeneity_p(std::vector<OwnEstimate>{good, bad}));
    EXPECT_EQ(heterogeneity_p(std::vector<OwnEstimate>{good, bad, other}),
              heterogeneity_p(std::vector<OwnEstimate>{good, other}));
  }
}

// Of estimates with known truth, whose scatter is unlike: how often a difference is found at 5 %.
double found_at_5_percent(int runs, int rounds) {
  constexpr int trials = 4000;
  int found = 0;
  for (int trial = 0; trial < trials; ++trial) {
    std::vector<OwnEstimate> estimates;
    for (int run = 0; run < runs; ++run) {
      double sum = 0, squares = 0;
      for (int round = 0; round < rounds; ++round) {
        const double value = (1 + run % 3) * philox_normal(17, 1000 * trial + 50 * run + round, runs);
        sum += value;
        squares += value * value;
      }
      const double variance = (squares - sum * sum / rounds) / (rounds - 1);
      estimates.push_back({sum / rounds, std::sqrt(variance / rounds), rounds - 1.0});
    }
    if (heterogeneity_p(estimates).value() < 0.05) ++found;
  }
  return static_cast<double>(found) / trials;
}

// Chi-squared would find one among eight runs in 12 % of the lines with 12 rounds, and in 21 % with 6.
TEST(Heterogeneity, FindsADifferenceWhereThereIsNoneAboutAsRarelyAsItSays) {
  const double error = std::sqrt(0.05 * 0.95 / 4000);
  for (const int runs : {2, 3, 5, 8}) {
    const double share = found_at_5_percent(runs, 12);
    EXPECT_LT(share, 0.05 + 3.3 * error) << runs;
    EXPECT_GT(share, 0.05 - 3.3 * error) << runs;
  }
  EXPECT_LT(found_at_5_percent(8, 6), 0.09);  // Welch's test is a little too quick with 5 degrees of freedom
}

}  // namespace
}  // namespace harness::analysis
