// What the verdicts are worth: whole sweeps are simulated under noise whose truth is known (docs/method.md quotes the
// numbers printed here).
#include <gtest/gtest.h>

#include <cmath>
#include <cstdio>
#include <random>

#include "analysis/paired_effect.h"
#include "analysis/power.h"
#include "analysis/simulated_sweep.h"
#include "support/soak.h"

namespace harness::analysis {
namespace {

using test::compare_paired;
constexpr int cases = 11, rounds = 12;

struct Count {
  int sweeps = 0;
  int with_false_verdict = 0;   // some identical case came out faster or slower
  int planted = 0, found = 0;   // the planted effect came out faster or slower, rightly
  int identical = 0, same = 0;  // identical cases, and how many were called so
};

// Case 1 has step time `planted_ratio` (1: none planted); all others equal the baseline.
Count simulate(const test::simulated::Noise& noise, int sweeps, double planted_ratio, double smallest_effect) {
  Count count;
  count.sweeps = sweeps;
  for (int sweep = 0; sweep < sweeps; ++sweep) {
    std::vector<double> truth(cases + 1, 1.0);
    truth[1] = planted_ratio;
    const auto medians = test::simulated::Sweep(noise, 1000 + static_cast<unsigned>(sweep)).run(cases, rounds, truth);
    bool false_verdict = false;
    for (std::size_t which = 1; which <= cases; ++which) {
      const Verdict verdict = test::compare_paired(medians[0], medians[which], cases, smallest_effect).verdict;
      if (truth[which] != 1.0) {
        ++count.planted;
        count.found += verdict == (truth[which] < 1 ? Verdict::faster : Verdict::slower);
        continue;
      }
      ++count.identical;
      false_verdict |= verdict == Verdict::faster || verdict == Verdict::slower;
      count.same += verdict == Verdict::same;
    }
    count.with_false_verdict += false_verdict;
  }
  return count;
}

void print(const char* noise, double planted_ratio, double smallest_effect, const Count& c) {
  std::printf("%s, planted %+.0f %%, smallest effect %.0f %%: sweeps with a false verdict %.1f %%", noise,
              100 * (planted_ratio - 1), 100 * smallest_effect, 100.0 * c.with_false_verdict / c.sweeps);
  if (c.planted > 0) std::printf(", planted effect found in %.1f %%", 100.0 * c.found / c.planted);
  std::printf(", identical cases called same %.1f %%\n", 100.0 * c.same / c.identical);
}

// The largest k with P(Binomial(n, p) >= k) >= 1 %: more than that is not consistent with p.
int binomial_bound_99(int n, double p) {
  double at_least = 1;
  double term = std::pow(1 - p, n);
  for (int k = 0; k <= n; ++k) {
    if (at_least < 0.01) return k - 1;
    at_least -= term;
    term *= (n - k) / (k + 1.0) * p / (1 - p);
  }
  return n;
}

const int sweeps = test::draws(300, 300);  // a line

const test::simulated::Noise harsh{.drift = 0.02, .drift_time_s = 120, .set_up = 0.004};

TEST(Simulation, TheBoundIsTheBinomials) {
  EXPECT_EQ(binomial_bound_99(300, 0.05), 24);  // P(X >= 24) = 1.5 %, P(X >= 25) = 0.9 %
}

// A smallest effect of 0 is the hard case: every interval that leaves out "no change" is then a verdict.
TEST(Simulation, IdenticalCasesGetNoMoreFalseVerdictsThanDeclared) {
  for (const double smallest_effect : {0.0, 0.01}) {
    const Count count = simulate({}, sweeps, 1.0, smallest_effect);
    print("drift 1 %/10 min, set-up 0.2 %", 1.0, smallest_effect, count);
    EXPECT_LE(count.with_false_verdict, binomial_bound_99(sweeps, 0.05));
  }
}

TEST(Simulation, APlantedTwoPercentIsFound) {
  for (const double ratio : {0.98, 1.02}) {
    const Count count = simulate({}, sweeps, ratio, 0.0);
    print("drift 1 %/10 min, set-up 0.2 %", ratio, 0.0, count);
    EXPECT_GE(count.found, 0.95 * count.planted);
  }
  // To prove more, that it is beyond 1 %, takes more than 12 rounds often enough; 4 % it proves.
  print("drift 1 %/10 min, set-up 0.2 %", 0.98, 0.01, simulate({}, sweeps, 0.98, 0.01));
  const Count four = simulate({}, sweeps / 3, 0.96, 0.01);
  print("drift 1 %/10 min, set-up 0.2 %", 0.96, 0.01, four);
  EXPECT_GE(four.found, 0.95 * four.planted);
}

TEST(Simulation, UnderHarsherNoiseVerdictsStayHonest) {
  for (const double smallest_effect : {0.0, 0.01}) {
    const Count count = simulate(harsh, sweeps, 1.0, smallest_effect);
    print("drift 2 %/2 min, set-up 0.4 %", 1.0, smallest_effect, count);
    EXPECT_LE(count.with_false_verdict, binomial_bound_99(sweeps, 0.05));
    print("drift 2 %/2 min, set-up 0.4 %", 0.98, smallest_effect, simulate(harsh, sweeps / 3, 0.98, smallest_effect));
  }
}

TEST(Simulation, ResolvableEffectIsFoundFourTimesInFive) {
  const double deviation = 0.004;
  const double effect = resolvable_effect_of_pairs(rounds, cases, deviation, 0.01, 0.95);
  std::mt19937 random(7);
  std::normal_distribution<double> normal(0, deviation);
  constexpr int trials = 4000;
  int found = 0;
  for (int trial = 0; trial < trials; ++trial) {
    std::vector<double> baseline(rounds, 1.0), changed;
    for (int i = 0; i < rounds; ++i) changed.push_back((1 + effect) * std::exp(normal(random)));
    found += test::compare_paired(baseline, changed, cases, 0.01).verdict == Verdict::slower;
  }
  std::printf("resolvable effect %.2f %%: found in %.1f %%\n", 100 * effect, 100.0 * found / trials);
  EXPECT_NEAR(static_cast<double>(found) / trials, 0.8, 0.05);
}

}  // namespace
}  // namespace harness::analysis
