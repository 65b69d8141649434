#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include "analysis/estimator.h"
#include "analysis/summary.h"
#include "analysis/verdict.h"
#include "base/text.h"

namespace harness::analysis {
namespace {

using ::testing::FieldsAre;

// Boost.Math computes the distributions; our code chooses the arguments and the tails. The expected values come from
// printed tables and from Simpson's rule over the chi distribution of the standard error.
TEST(Distributions, AreAskedForTheRightTail) {
  EXPECT_NEAR(student_t_quantile(0.975, 5), 2.5705818356, 1e-10);
  EXPECT_NEAR(student_t_quantile(0.9995, 3), 12.9239786368, 1e-8);
  EXPECT_NEAR(noncentral_t_upper_tail(3.1, 22, 4), 0.8019181330, 1e-9);
  EXPECT_NEAR(f_upper_tail(3, 4, 20), 0.04320099833421409, 1e-12);
  EXPECT_EQ(f_upper_tail(-1, 3, 5), 1);
  EXPECT_NEAR(binomial_upper_tail(3, 2, 0.5), 0.5, 1e-12);
  EXPECT_EQ(binomial_upper_tail(3, 4, 0.5), 0);
  EXPECT_EQ(binomial_upper_tail(3, 0, 0.5), 1);
}

TEST(MeanInterval, IsStudentsTInterval) {
  const std::vector<double> values{1, 2, 3, 4};
  const auto interval = mean_interval(values, 0.05);
  EXPECT_DOUBLE_EQ(interval.center, 2.5);
  EXPECT_NEAR(interval.standard_error, std::sqrt(5.0 / 3 / 4), 1e-15);
  EXPECT_NEAR(interval.high - 2.5, student_t_quantile(0.975, 3) * interval.standard_error, 1e-12);
  EXPECT_EQ(interval.n, 4);
  EXPECT_EQ(mean_interval(std::vector<double>{1}, 0.05).center, 1);
  EXPECT_TRUE(std::isnan(mean_interval(std::vector<double>{1}, 0.05).low));
  EXPECT_TRUE(std::isnan(mean_interval({}, 0.05).center));
}

TEST(TwoSamples, WithoutTrimmingItIsWelchsInterval) {
  // By hand: the variances of the means are 5/12 and 20/12; (25/12)² / ((5/12)²/3 + (20/12)²/3) = 75/17 degrees.
  const ConfidenceInterval i =
      yuen_welch_interval(std::array{1.0, 2.0, 3.0, 4.0}, std::array{2.0, 4.0, 6.0, 8.0}, 0.05);
  const double half = student_t_quantile(0.975, 75.0 / 17) * std::sqrt(25.0 / 12);
  EXPECT_NEAR(i.center, 2.5, 1e-12);
  EXPECT_NEAR(i.standard_error, std::sqrt(25.0 / 12), 1e-12);
  EXPECT_NEAR(i.low, 2.5 - half, 1e-9);
  EXPECT_NEAR(i.high, 2.5 + half, 1e-9);
  EXPECT_EQ(i.n, 8);
}

// n = 10 a side, trim 2 from each end: mean of 3..8; winsorised values 3,3,3,4,5,6,7,8,8,8 about 5.5: squares 42.5. Two
// equal variances with 5 degrees of freedom each have 10 together.
TEST(TwoSamples, TrimmingLeavesOutTheEndsAndWinsorisesThem) {
  const std::vector<double> first{1, 2, 3, 4, 5, 6, 7, 8, 9, 100}, second{0, 12, 13, 14, 15, 16, 17, 18, 19, 20};
  const auto interval = yuen_welch_interval(first, second, 0.05);
  EXPECT_DOUBLE_EQ(interval.center, 10);
  EXPECT_DOUBLE_EQ(interval.standard_error, std::sqrt(2 * 42.5 / 30));
  EXPECT_NEAR(interval.high - 10, 2.2281388520 * std::sqrt(2 * 42.5 / 30), 1e-9);
  EXPECT_NEAR(interval.high - interval.center, interval.center - interval.low, 1e-12);
  EXPECT_EQ(interval.n, 20);
}

TEST(TwoSamples, TooFewValuesGiveACentreAndEqualOnesNoWidth) {
  const ConfidenceInterval i = yuen_welch_interval(std::array{1.0}, std::array{2.0, 3.0}, 0.05);
  EXPECT_NEAR(i.center, 1.5, 1e-12);
  EXPECT_TRUE(std::isnan(i.low));
  EXPECT_TRUE(std::isnan(yuen_welch_interval({}, std::array{2.0, 3.0}, 0.05).center));
  const ConfidenceInterval same = yuen_welch_interval(std::array{2.0, 2.0}, std::array{2.0, 2.0}, 0.05);
  EXPECT_EQ(same.low, 0);
  EXPECT_EQ(same.high, 0);
}

// However well they agree: a few values that happen to lie close together do not show the scatter.
TEST(Pairs, FewerThanFourGiveANumberButNoVerdict) {
  for (int rounds = 0; rounds <= 5; ++rounds) {
    SweepBlocks sweep;
    for (int round = 0; round < rounds; ++round) {
      sweep.blocks.push_back({.case_index = 0, .round = round, .seconds = 2});
      sweep.blocks.push_back({.case_index = 1, .round = round, .seconds = round + 1 == rounds ? 1.0001 : 1});
    }
    const std::vector<Question> question{{1, family_alpha(1, 0.95), 0.01}};
    const Effect effect = effect_of(estimate_mean_pairs(sweep, question).answers[0], 0.01, {}).value_or(Effect{});
    EXPECT_EQ(effect.rounds, rounds);
    EXPECT_EQ(effect.verdict, rounds < least_pairs ? Verdict::none : Verdict::faster) << rounds;
    if (rounds == 0) continue;
    EXPECT_NEAR(effect.ratio, 0.5, 1e-4);
    EXPECT_EQ(std::isnan(effect.low), rounds < least_pairs) << rounds;
    EXPECT_EQ(std::isnan(effect.high), rounds < least_pairs) << rounds;
  }
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

ConfidenceInterval between(double low, double high) {
  return {.center = (low + high) / 2, .low = low, .high = high, .n = 12, .standard_error = 0.1};
}

TEST(Verdict, TheWholeIntervalDecides) {
  const double e = 0.01, edge = std::log1p(e);
  EXPECT_EQ(verdict_of(between(edge + 1e-9, 1), e), Verdict::slower);
  EXPECT_EQ(verdict_of(between(-1, -edge - 1e-9), e), Verdict::faster);
  EXPECT_EQ(verdict_of(between(-edge + 1e-9, edge - 1e-9), e), Verdict::same);
  EXPECT_EQ(verdict_of(between(0, edge + 1e-9), e), Verdict::unresolved);
  EXPECT_EQ(verdict_of(between(-INFINITY, INFINITY), e), Verdict::unresolved);
  EXPECT_EQ(verdict_of(ConfidenceInterval{}, e), Verdict::none);
}

TEST(Decide, NamesTheReason) {
  const ConfidenceInterval faster = between(-0.3, -0.2), slower = between(0.2, 0.3), unknown{};
  const auto predicted = [](double log_ratio) {
    return ConfidenceInterval{.center = log_ratio, .low = store::not_known, .high = store::not_known};
  };
  constexpr auto baseline = store::CaseRole::baseline, control = store::CaseRole::control;
  constexpr auto failed = store::CaseStatus::failed, impossible = store::CaseStatus::impossible;
  struct Row {
    ConfidenceInterval interval;
    Evidence evidence;
    Verdict verdict;
    Reason reason;
  };
  const std::vector<Row> rows{
      {faster, {}, Verdict::faster, Reason::interval},
      {unknown, {}, Verdict::none, Reason::too_few_rounds},
      {faster, {.honoured = false}, Verdict::not_honoured, Reason::not_honoured},
      {faster, {.within_limit = false}, Verdict::none, Reason::beyond_limit},
      {faster, {.honoured = false, .within_limit = false}, Verdict::none, Reason::beyond_limit},
      {faster, {.role = baseline}, Verdict::none, Reason::baseline},
      {unknown, {.measured = false}, Verdict::none, Reason::not_measured},
      {unknown, {.status = impossible, .measured = false}, Verdict::none, Reason::impossible},
      {slower, {.role = control, .honoured = false, .within_limit = false}, Verdict::slower, Reason::beyond_limit},
      {faster, {.status = failed}, Verdict::faster, Reason::failed},
      {predicted(-0.2), {.predicted = true}, Verdict::none, Reason::predicted},
      {predicted(0.048), {.predicted = true}, Verdict::none, Reason::too_close_to_call},
      {predicted(0.049), {.predicted = true}, Verdict::none, Reason::predicted},
      {predicted(0), {.role = baseline, .predicted = true}, Verdict::none, Reason::baseline},
      {predicted(-0.2),
       {.status = impossible, .measured = false, .predicted = true},
       Verdict::none,
       Reason::impossible}};
  for (const Row& row : rows)
    EXPECT_THAT(decide(row.interval, 0.05, row.evidence), FieldsAre(row.verdict, row.reason)) << &row - rows.data();
}

}  // namespace
}  // namespace harness::analysis
