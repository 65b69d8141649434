// Outliers among rates that should be equal: one, half, or all but one of them; healthy ones have no finding.
#include "doctor/load_stage.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <limits>
#include <random>

#include "base/text.h"

namespace harness::doctor {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

constexpr Tolerance products{0.97, 0.92, 0.84};

std::vector<std::size_t> slow_of(const std::vector<double>& rates, const Tolerance& tolerance = products) {
  std::vector<std::size_t> at;
  for (const Slow& slow : compare_rates(rates, tolerance).slow) at.push_back(slow.at);
  return at;
}

class Draws {
 public:
  // n rates, of which those in `slow` are slower by `factor`; all scatter.
  std::vector<double> rates(std::size_t n, double scatter, double factor = 1,
                            const std::vector<std::size_t>& slow = {}) {
    std::vector<double> out(n);
    std::normal_distribution<double> around_one(1, scatter);
    for (double& rate : out) rate = 1e15 * around_one(engine_);
    for (const std::size_t i : slow) out[i] *= factor;
    return out;
  }
  std::vector<std::size_t> some_of(std::size_t n, std::size_t k) {
    std::vector<std::size_t> all(n);
    for (std::size_t i = 0; i < n; ++i) all[i] = i;
    std::ranges::shuffle(all, engine_);
    all.resize(k);
    std::ranges::sort(all);
    return all;
  }

 private:
  std::mt19937_64 engine_{20261126};
};

// Any k of n slow rates are named exactly, even if they are the majority.
TEST(Outliers, TheSlowOnesAreNamedHoweverManyTheyAre) {
  Draws draws;
  for (const double factor : {0.5, 0.8, 0.9}) {
    int sets = 0, wrong = 0;
    for (std::size_t n = 2; n <= 32; ++n) {
      for (std::size_t k = 1; k < n; ++k) {
        for (int times = 0; times < 8; ++times) {
          const std::vector<std::size_t> slow = draws.some_of(n, k);
          ++sets;
          wrong += slow_of(draws.rates(n, 0.01, factor, slow)) != slow ? 1 : 0;
        }
      }
    }
    EXPECT_LE(wrong, factor > 0.85 ? sets / 200 : 0) << "slower by " << factor << ", of " << sets;
  }
}

// Without scatter, as under a fixed power cap.
TEST(Outliers, ASlowHalfIsFoundAndTheOthersAreTheUsual) {
  std::vector<double> half(8, 1.0);
  for (const std::size_t i : {1u, 3u, 5u, 7u}) half[i] = 0.5;
  const Likeness found = compare_rates(half, products);
  EXPECT_EQ(found.usual, 1.0);
  EXPECT_THAT(slow_of(half), ElementsAre(1, 3, 5, 7));
  EXPECT_EQ(found.slow[0].verdict, Verdict::fail);
  std::vector<double> rack(16, 1.0);
  std::fill(rack.begin(), rack.begin() + 7, 0.95);
  EXPECT_THAT(slow_of(rack), ElementsAre(0, 1, 2, 3, 4, 5, 6));
  EXPECT_EQ(compare_rates(rack, products).slow[0].verdict, Verdict::warn);
}

// Returns the tolerated share of sets of n healthy rates with a finding.
double most_of(std::size_t n, double scatter) {
  if (scatter < 0.015) return 1.0 / 1000;
  if (scatter < 0.025) return 1.0 / 30;
  if (n >= 16) return 1.0 / 500;
  return n >= 8 ? 1.0 / 40 : 1.0 / 6;
}

TEST(Outliers, HealthyOnesHaveNoFinding) {
  Draws draws;
  constexpr int sets = 10000;
  for (const std::size_t n : {2u, 3u, 4u, 8u, 16u, 32u}) {
    for (const double scatter : {0.01, 0.02, 0.03}) {
      int findings = 0;
      for (int i = 0; i < sets; ++i) findings += slow_of(draws.rates(n, scatter)).empty() ? 0 : 1;
      EXPECT_LE(findings, most_of(n, scatter) * sets) << n << " with scatter " << scatter;
      RecordProperty(fmt::format("n{}_scatter{}", n, scatter), findings);
    }
  }
}

// Slow rates need not be equal. In a gapless spread the lowest rates still count as slow.
TEST(Outliers, SeveralGroupsAndNoGroups) {
  EXPECT_THAT(slow_of({1, 1.01, 0.5, 0.8, 0.99, 0.81, 1, 0.8}), ElementsAre(2, 3, 5, 7));
  EXPECT_THAT(slow_of({1, 0.5, 0.6, 0.7, 0.8, 1, 1, 1}), ElementsAre(1, 2, 3, 4));
  std::vector<double> spread;
  for (int i = 0; i < 16; ++i) spread.push_back(1 - 0.03 * i);
  EXPECT_THAT(slow_of(spread), ::testing::Contains(15));
  EXPECT_THAT(slow_of(spread), ::testing::Not(::testing::Contains(3)));
}

// Rates that differ by less than the tolerance count as equal, however little they scatter.
TEST(Outliers, ASmallDifferenceIsNone) {
  EXPECT_THAT(slow_of({1, 1, 1, 1, 1, 1, 0.98, 0.98}), IsEmpty());
  EXPECT_THAT(slow_of({1, 0.9, 0.9, 0.9}, {0.85, 0.6, 0.6}), IsEmpty());
}

// In a large job, a few implausibly high results make no other rank slow. A rack of 32 among 1024 is a group.
TEST(Outliers, AFewThatAreTooFastAccuseNobody) {
  std::vector<double> rates(1024, 1.0);
  for (std::size_t i = 0; i < 8; ++i) rates[i] = 1.5;
  EXPECT_THAT(slow_of(rates), IsEmpty());
  for (std::size_t i = 0; i < 32; ++i) rates[i] = 1.5;
  EXPECT_EQ(slow_of(rates).size(), 992u);
}

TEST(Outliers, WhatWasNotMeasuredIsLeftOut) {
  constexpr double none = std::numeric_limits<double>::quiet_NaN(), endless = std::numeric_limits<double>::infinity();
  EXPECT_THAT(slow_of({none, 1, 1, none, 0.5, 1, endless}), ElementsAre(4));
  EXPECT_TRUE(std::isnan(compare_rates(std::vector<double>{none, none}, products).usual));
  EXPECT_TRUE(std::isnan(compare_rates({}, products).usual));
  EXPECT_EQ(compare_rates(std::vector<double>{none, 3}, products).usual, 3);
  EXPECT_THAT(slow_of({none, 3}), IsEmpty());
  EXPECT_THAT(slow_of({0, 0, 0}), IsEmpty());
  EXPECT_THAT(slow_of({0, 1, 1, 0}), ElementsAre(0, 3));
}

}  // namespace
}  // namespace harness::doctor
