// Reliability of the level model's verdicts, from simulated sweeps with known truth. HARNESS_SOAK (make soak) runs
// every noise with 3000 sweeps each; docs/method.md quotes the printed table.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <vector>

#include "analysis/estimator.h"
#include "analysis/noisy_sweep.h"
#include "analysis/verdict.h"
#include "base/median.h"
#include "base/text.h"
#include "support/soak.h"

namespace harness::analysis {
namespace {

using test::soaking;
using test::simulated::Disturbance;
using test::simulated::NoisySweeps;
using test::simulated::Size;

struct Tally {
  int sweeps = 0;
  int excluded = 0;       // sweeps with an interval that excludes "no change"
  int false_verdict = 0;  // sweeps with a verdict beyond 1 % on an identical case
  int intervals = 0;
  double found = 0;  // share of a planted 2 % found beyond 1 %: the mean of faster and slower
  int carry_over = 0, widened = 0, control_moved = 0;  // sweeps
  std::vector<double> half_widths;

  double share(double count) const { return count / sweeps; }
  double error_of(double count) const { return std::sqrt(share(count) * (1 - share(count)) / sweeps); }
};

// All cases are identical. An effect would shift a case's interval without changing its width.
void add_sweep(const SweepBlocks& sweep, const std::vector<Question>& questions, Tally& tally) {
  const double threshold = std::log1p(0.01), beyond = std::log1p(0.02) - threshold;
  const SweepEstimate estimate = estimate_level(sweep, questions);
  bool excluded = false, false_verdict = false;
  for (std::size_t i = 0; i < questions.size(); ++i) {
    const ConfidenceInterval& interval = estimate.answers[i].log_ratio;
    if (questions[i].case_index == sweep.control || std::isnan(interval.low)) continue;
    ++tally.intervals;
    excluded |= interval.low > 0 || interval.high < 0;
    false_verdict |= interval.low > threshold || interval.high < -threshold;
    tally.found += ((interval.low + beyond > 0) + (interval.high - beyond < 0)) / 2.0;
    tally.half_widths.push_back((interval.high - interval.low) / 2);
  }
  ++tally.sweeps;
  tally.excluded += excluded;
  tally.false_verdict += false_verdict;
  if (!estimate.level) return;
  tally.carry_over += estimate.level->carry_over != no_case;
  tally.widened += estimate.level->widening > 1;
  tally.control_moved += estimate.level->baseline_left.has_value();
}

Tally simulate(const Disturbance& noise, const Size& size, int sweeps, unsigned seed) {
  std::vector<Question> questions{{1, family_alpha(1, 0.95), 0.01}};
  for (int i = 0; i < size.cases; ++i) questions.push_back({i + 2, family_alpha(size.cases, 0.95), 0.01});
  NoisySweeps noisy(noise, size, seed);
  Tally tally;
  while (tally.sweeps < sweeps) add_sweep(noisy.draw(), questions, tally);
  return tally;
}

struct PlantedCases {
  double block_deviation = 0;  // as the sweeps report it, on average; without a level, the true one
  std::vector<double> lows;    // of the intervals of cases without an effect
};

PlantedCases intervals_of(const Disturbance& noise, const Size& size, int sweeps) {
  std::vector<Question> questions;
  for (int i = 0; i < size.cases; ++i) questions.push_back({i + 2, family_alpha(size.cases, 0.95), 0.01});
  NoisySweeps noisy(noise, size, 7);
  PlantedCases out;
  for (int sweep = 0; sweep < sweeps; ++sweep) {
    const SweepEstimate estimate = estimate_level(noisy.draw(), questions);
    for (const Estimate& answer : estimate.answers) out.lows.push_back(answer.log_ratio.low);
    out.block_deviation += (estimate.level ? estimate.level->block_deviation : noise.set_up) / sweeps;
  }
  return out;
}

void print(const char* name, const Tally& tally) {
  std::printf("%-58s %5.1f ±%4.1f  %5.1f  %6.1f  %6.3f  %6.1f  %6.1f  %6.1f\n", name, 100 * tally.share(tally.excluded),
              100 * tally.error_of(tally.excluded), 100 * tally.share(tally.false_verdict),
              100 * tally.found / tally.intervals, 100 * median(tally.half_widths), 100 * tally.share(tally.carry_over),
              100 * tally.share(tally.widened), 100 * tally.share(tally.control_moved));
}

void print_heading() {
  std::printf("%-58s %11s  %5s  %6s  %6s  %6s  %6s  %6s\n", "noise (all numbers in %)", "excluded", "false", "found",
              "half", "rounds", "wider", "control");
}

struct Row {
  Disturbance noise;
  struct {
    double excluded, found, half_width;  // in %, of 3000 sweeps
  } study;                               // the one that recommended the procedure
};

// Some rows exceed the declared 5 %, as in the study: a sweep of this length cannot show the truth, or the assumptions
// are broken on purpose.
const std::vector<Row>& all_rows() {
  static const std::vector<Row> rows{
      {{.name = "drift 1 %, 600 s; set-up 0.2 %"}, {2.97, 99.7, 0.407}},
      {{.name = "drift 2 %, 120 s; set-up 0.4 %", .drift = 0.02, .drift_time_s = 120, .set_up = 0.004},
       {2.83, 18.6, 1.383}},
      {{.name = "the first, 10 % of blocks +5..20 %", .hit = 0.1}, {2.53, 95.7, 0.513}},
      {{.name = "the first, 20 % of blocks +5..20 %", .hit = 0.2}, {3.80, 39.3, 1.234}},
      {{.name = "no drift, set-up 0.5 %, 10 % of blocks +5..20 %", .drift = 0, .set_up = 0.005, .hit = 0.1},
       {3.20, 94.7, 0.586}},
      {{.name = "no drift, set-up 0.5 %", .drift = 0, .set_up = 0.005}, {3.50, 98.4, 0.550}},
      {{.name = "no drift, set-up 0.5 % with heavy tails (t, 3)", .drift = 0, .set_up = 0.005, .heavy_tails = true},
       {2.30, 99.7, 0.421}},
      {{.name = "no drift, variances 1 : 4", .drift = 0, .set_up = 0.004, .odd_scatter = 2}, {4.20, 89.1, 0.582}},
      {{.name = "the first, deviations 1 : 4", .odd_scatter = 4}, {3.77, 84.6, 0.636}},
      {{.name = "the same, baselines among the noisy", .odd_scatter = 4, .baseline_scatter = 4}, {3.53, 68.3, 0.820}},
      {{.name = "linear drift of 5 %, set-up 0.3 %", .drift = 0, .set_up = 0.003, .trend = 0.05}, {2.83, 100, 0.347}},
      {{.name = "drift 1 %, 30 s", .drift_time_s = 30}, {3.83, 67.5, 0.837}},
      {{.name = "drift 1 %, 1 h", .drift_time_s = 3600}, {3.33, 100, 0.287}},
      {{.name = "a neighbour comes and goes, 3 times +3 %", .drift = 0, .set_up = 0.003, .visits = 3},
       {2.27, 99.2, 0.470}},
      {{.name = "a sine of 3 %, 20 min", .drift = 0, .sine = 0.03}, {5.87, 61.5, 0.476}},
      {{.name = "rounds of unlike scatter", .set_up = 0.004, .round_scatter = 0.7}, {2.30, 85.0, 0.683}},
      {{.name = "15 % of blocks missing", .missing = 0.15}, {2.87, 99.0, 0.475}},
      {{.name = "15 % missing, 10 % of blocks +5..20 %", .hit = 0.1, .missing = 0.15}, {2.60, 88.3, 0.609}},
      {{.name = "3 sessions of 4 rounds", .sessions = 3}, {2.47, 99.7, 0.411}},
      {{.name = "half of cases drift by themselves; truth: this sweep's mean",
        .drift = 0.007,
        .odd_drift = 0.007,
        .odd_drift_centred = true},
       {0.53, 95.7, 0.541}},
      {{.name = "the same; truth: all possible sweeps'", .drift = 0.007, .odd_drift = 0.007}, {12.07, 92.7, 0.538}},
      {{.name = "+0.5 % on the block after a third of the cases", .after_third = 0.005}, {5.53, 78.4, 0.759}},
      {{.name = "the neighbour slows half of the cases twice as much",
        .drift = 0,
        .set_up = 0.003,
        .visits = 3,
        .odd_suffers = 1},
       {16.10, 26.1, 1.512}},
  };
  return rows;
}

// The study's figures are met within the Monte Carlo errors of both, or bettered: three standard errors, for two dozen
// rows of three figures.
void expect_as_studied(const Row& row, const Tally& tally) {
  const double studied = row.study.excluded / 100, found = row.study.found / 100;
  const auto error = [&](double share) { return std::sqrt(share * (1 - share) * (1.0 / 3000 + 1.0 / tally.sweeps)); };
  EXPECT_LE(tally.share(tally.excluded), studied + 3 * error(studied)) << row.noise.name;
  // Cases of a sweep share its noise: count sweeps, not cases.
  EXPECT_GE(tally.found / tally.intervals, found - 3 * error(found) - 0.001) << row.noise.name;
  EXPECT_LE(100 * median(tally.half_widths), 1.05 * row.study.half_width) << row.noise.name;
}

TEST(LevelSimulation, ErrorAndPowerByNoise) {
  const int sweeps = test::draws(300, 3000);
  print_heading();
  for (std::size_t i = 0; i < all_rows().size(); ++i) {
    const Row& row = all_rows()[i];
    if (!soaking() && i > 2) break;
    const Tally tally = simulate(row.noise, {}, sweeps, 100 + static_cast<unsigned>(i));
    print(row.noise.name, tally);
    expect_as_studied(row, tally);
  }
}

// The number of sweeps that may be wrong at a rate of 5 %, with three standard errors.
double at_most_five_percent(int sweeps) {
  return 0.05 * sweeps + 3 * std::sqrt(0.05 * 0.95 * sweeps);
}

// A machine that runs random whole blocks in a slower state: a neighbour on the sibling hyperthread, or a clock that
// stays low. With few blocks of a case, most of them may be slow.
TEST(LevelSimulation, ASecondStateOfTheMachineIsNoEffect) {
  const int sweeps = test::draws(300, 3000);
  std::printf("%-40s %s\n", "blocks in a slower state", "false sweeps, half width (%)");
  for (const double share : {0.05, 0.1, 0.25}) {
    for (const int rounds : {5, 6, 8, 12, 20}) {
      const Size size{.cases = 6, .rounds = rounds};
      std::vector<Question> questions;
      for (int i = 0; i < size.cases; ++i) questions.push_back({i + 2, family_alpha(size.cases, 0.95), 0.1});
      NoisySweeps noisy({.drift = 0, .set_up = 0.03, .second_state = share}, size, 9);
      int wrong = 0;
      std::vector<double> half_widths;
      for (int sweep = 0; sweep < sweeps; ++sweep) {
        bool moved_one = false;
        for (const Estimate& answer : estimate_level(noisy.draw(), questions).answers) {
          moved_one |= moved(verdict_of(answer.log_ratio, 0.1));
          half_widths.push_back((answer.log_ratio.high - answer.log_ratio.low) / 2);
        }
        wrong += moved_one;
      }
      std::printf("%2.0f %% of blocks, %2d rounds: %5.1f %%  %5.1f\n", 100 * share, rounds, 100.0 * wrong / sweeps,
                  100 * median(half_widths));
      EXPECT_LE(wrong, at_most_five_percent(sweeps)) << share << " " << rounds;
    }
  }
}

// plan promises that four sweeps in five find an effect of this size.
TEST(LevelSimulation, ResolvableEffectIsFoundFourTimesInFive) {
  constexpr double deviation = 0.004;
  const std::vector<int> all_rounds = soaking() ? std::vector{4, 5, 6, 8, 12, 24} : std::vector{4, 5, 12};
  const std::vector<int> all_cases = soaking() ? std::vector{1, 3, 11, 22} : std::vector{3, 11};
  for (const int rounds : all_rounds) {
    for (const int cases : all_cases) {
      const Disturbance white{.name = "", .drift = 0, .set_up = deviation, .step = 0};
      const PlantedCases cases_of = intervals_of(white, {.cases = cases, .rounds = rounds}, soaking() ? 2000 : 400);
      const double effect = resolvable_effect(rounds, cases, cases_of.block_deviation, 0.01, 0.95);
      const auto count =
          std::ranges::count_if(cases_of.lows, [&](double low) { return low + std::log1p(effect) > std::log1p(0.01); });
      const double found = static_cast<double>(count) / static_cast<double>(cases_of.lows.size());
      std::printf("%d rounds, %d cases: found in %.1f %%\n", rounds, cases, 100 * found);
      EXPECT_NEAR(found, 0.8, 0.04) << rounds << " rounds, " << cases << " cases";
    }
  }
}

}  // namespace
}  // namespace harness::analysis
