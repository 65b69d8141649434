#include "analysis/statistics.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <numbers>
#include <vector>

#include "analysis/estimator.h"
#include "base/error.h"
#include "paired_effect.h"

namespace harness::analysis {
namespace {

using test::compare_paired;

// Degrees 1 and 2 have closed forms; the rest are printed tables' values, to more digits (checked against R's qt).
TEST(StudentT, AgreesWithClosedFormsEverywhere) {
  for (const double p : {1e-12, 1e-6, 0.01, 0.3, 0.4999, 0.5001, 0.8, 0.975, 0.99999}) {
    const double cauchy = -1 / std::tan(std::numbers::pi * p);
    EXPECT_NEAR(student_t_quantile(p, 1), cauchy, 1e-10 * std::abs(cauchy)) << p;
    const double two = (2 * p - 1) / std::sqrt(2 * p * (1 - p));
    EXPECT_NEAR(student_t_quantile(p, 2), two, 1e-10 * std::max(1.0, std::abs(two))) << p;
    // Four degrees: Shaw, "Sampling Student's T distribution", J. Comp. Finance 9 (2006).
    const double a = std::sqrt(4 * p * (1 - p));
    const double four = std::copysign(2 * std::sqrt(std::cos(std::acos(a) / 3) / a - 1), p - 0.5);
    EXPECT_NEAR(student_t_quantile(p, 4), four, 2e-10 * std::max(1.0, std::abs(four))) << p;
  }
}

TEST(StudentT, AgreesWithTables) {
  EXPECT_NEAR(student_t_quantile(0.975, 5), 2.5705818356, 1e-10);
  EXPECT_NEAR(student_t_quantile(0.975, 10), 2.2281388520, 1e-10);
  EXPECT_NEAR(student_t_quantile(0.95, 7), 1.8945786051, 1e-10);
  EXPECT_NEAR(student_t_quantile(0.995, 30), 2.7499956536, 1e-10);
  EXPECT_NEAR(student_t_quantile(0.9995, 3), 12.9239786368, 1e-8);
  EXPECT_NEAR(student_t_quantile(0.975, 1e6), 1.9599663570, 1e-9);
  EXPECT_EQ(student_t_quantile(0.5, 3.5), 0);
}

// The values are Simpson's rule over the chi distribution of the standard error.
TEST(NoncentralT, AgreesWithAnIntegral) {
  EXPECT_NEAR(noncentral_t_upper_tail(2.5, 7, 3), 0.6905169272, 1e-9);
  EXPECT_NEAR(noncentral_t_upper_tail(3.1, 22, 4), 0.8019181330, 1e-9);
  EXPECT_NEAR(noncentral_t_upper_tail(4.5, 3, 2.5), 0.2138656113, 1e-8);
  EXPECT_NEAR(student_t_quantile(1 - noncentral_t_upper_tail(2, 9.5, 0), 9.5), 2, 1e-10);
}

TEST(StudentT, RefusesNonsense) {
  EXPECT_THROW(student_t_quantile(0, 3), Error);
  EXPECT_THROW(student_t_quantile(1, 3), Error);
  EXPECT_THROW(student_t_quantile(0.5, 0), Error);
  EXPECT_THROW(student_t_quantile(std::nan(""), 3), Error);
}

// n = 10 a side, trim 2 from each end: mean of 3..8; winsorised values 3,3,3,4,5,6,7,8,8,8 about 5.5: squares 42.5. Two
// equal variances with 5 degrees of freedom each have 10 together.
TEST(Yuen, AgreesWithTheFormulaByHand) {
  const std::vector<double> first{1, 2, 3, 4, 5, 6, 7, 8, 9, 100}, second{0, 12, 13, 14, 15, 16, 17, 18, 19, 20};
  const auto interval = yuen_welch_interval(first, second, 0.05);
  EXPECT_DOUBLE_EQ(interval.center, 10);
  EXPECT_DOUBLE_EQ(interval.standard_error, std::sqrt(2 * 42.5 / 30));
  EXPECT_NEAR(interval.high - 10, 2.2281388520 * std::sqrt(2 * 42.5 / 30), 1e-9);
  EXPECT_NEAR(interval.high - interval.center, interval.center - interval.low, 1e-12);
  EXPECT_EQ(interval.n, 20);
}

TEST(MeanInterval, IsStudentsTInterval) {
  const std::vector<double> values{1, 2, 3, 4};
  const auto interval = mean_interval(values, 0.05);
  EXPECT_DOUBLE_EQ(interval.center, 2.5);
  EXPECT_NEAR(interval.standard_error, std::sqrt(5.0 / 3 / 4), 1e-15);
  EXPECT_NEAR(interval.high - 2.5, student_t_quantile(0.975, 3) * interval.standard_error, 1e-12);
  EXPECT_EQ(interval.n, 4);
}

TEST(MeanInterval, NeedsTwoValues) {
  EXPECT_TRUE(std::isnan(mean_interval(std::vector<double>{1}, 0.05).low));
  EXPECT_TRUE(std::isnan(mean_interval({}, 0.05).center));
}

class ComparePaired : public ::testing::Test {
 protected:
  // 12 pairs whose ratios scatter by ±0.1 % around `ratio` while both drift far more.
  Effect compare(double ratio, double scatter = 0.001, double smallest = 0.01) {
    baseline_.clear();
    changed_.clear();
    for (int round = 0; round < 12; ++round) {
      const double drift = 1 + 0.05 * std::sin(round);
      baseline_.push_back(drift);
      changed_.push_back(drift * ratio * (1 + scatter * (round % 2 == 0 ? 1 : -1) * (1 + round % 3)));
    }
    return test::compare_paired(baseline_, changed_, 5, smallest);
  }
  std::vector<double> baseline_, changed_;
};

TEST_F(ComparePaired, AllFourVerdicts) {
  EXPECT_EQ(compare(1.05).verdict, Verdict::slower);
  EXPECT_EQ(compare(0.95).verdict, Verdict::faster);
  EXPECT_EQ(compare(1.0).verdict, Verdict::same);
  EXPECT_EQ(compare(1.0101).verdict, Verdict::unresolved);
}

TEST_F(ComparePaired, DriftCommonToARoundCancels) {
  const Effect effect = compare(0.95);
  EXPECT_NEAR(effect.ratio, 0.95, 1e-3);
  EXPECT_LT(effect.low, effect.ratio);
  EXPECT_GT(effect.high, effect.ratio);
  EXPECT_EQ(effect.rounds, 12);
  EXPECT_EQ(effect.rounds_needed, 0);
}

TEST_F(ComparePaired, AnEffectThatIsRealButTooSmallToMatterIsNotFaster) {
  EXPECT_EQ(compare(0.985, 0.001, 0.02).verdict, Verdict::same);
  EXPECT_EQ(compare(0.985, 0.001, 0.01).verdict, Verdict::faster);
}

TEST_F(ComparePaired, NoiseMakesItUnresolvedAndSaysHowManyRounds) {
  const Effect effect = compare(1.02, 0.01);
  EXPECT_EQ(effect.verdict, Verdict::unresolved);
  EXPECT_GT(effect.rounds_needed, 12);
  EXPECT_LT(effect.rounds_needed, 200);
  // With twice the distance to the threshold a quarter of the rounds will do, roughly.
  EXPECT_LT(compare(1.03, 0.02).rounds_needed, compare(1.02, 0.02).rounds_needed);
}

// However well they agree: a few values that happen to lie close together are no scatter.
TEST_F(ComparePaired, FewerThanFourPairsGiveANumberButNoVerdict) {
  for (std::size_t pairs = 1; pairs <= 5; ++pairs) {
    std::vector<double> halved(pairs, 1.0);
    halved.back() = 1.0001;
    const Effect effect = test::compare_paired(std::vector<double>(pairs, 2.0), halved, 1, 0.01);
    EXPECT_NEAR(effect.ratio, 0.5, 1e-4);
    EXPECT_EQ(effect.rounds, static_cast<int>(pairs));
    EXPECT_EQ(effect.verdict, pairs < 4 ? Verdict::none : Verdict::faster) << pairs;
    EXPECT_EQ(std::isnan(effect.low), pairs < 4) << pairs;
    EXPECT_EQ(std::isnan(effect.high), pairs < 4) << pairs;
  }
  EXPECT_EQ(test::compare_paired({}, {}, 1, 0.01).rounds, 0);
}

TEST_F(ComparePaired, MoreComparisonsWidenTheInterval) {
  compare(1.03, 0.005);
  const Effect few = test::compare_paired(baseline_, changed_, 1, 0.01);
  const Effect many = test::compare_paired(baseline_, changed_, 11, 0.01);
  EXPECT_LT(many.low, few.low);
  EXPECT_GT(many.high, few.high);
}

TEST(ResolvableEffect, FallsWithRoundsAndIsNeverBelowTheThreshold) {
  double before = std::numeric_limits<double>::infinity();
  for (const int rounds : {4, 8, 12, 24, 48}) {
    const double effect = resolvable_effect(rounds, 11, 0.004, 0.01, 0.95);
    EXPECT_LT(effect, before) << rounds;
    EXPECT_GT(effect, 0.01);
    before = effect;
  }
  EXPECT_TRUE(std::isinf(resolvable_effect(3, 11, 0.004, 0.01, 0.95)));
}

TEST(RoundsToReach, AreTheFewestThatDo) {
  const ConfidenceInterval now{.center = 0, .n = 12, .standard_error = 0.01};
  for (double distance = 0.01; distance < 0.03; distance *= 1.003) {
    int fewest = 13;
    while (student_t_quantile(0.975, fewest - 1) * 0.01 * std::sqrt(12.0 / fewest) >= distance) ++fewest;
    EXPECT_EQ(rounds_to_reach(distance, now, 0.05), fewest) << distance;
  }
}

}  // namespace
}  // namespace harness::analysis
