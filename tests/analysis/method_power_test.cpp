// "Verdict" of docs/method.md: the rounds that would settle a case under `level`, and the effect that `plan` promises.
#include <gtest/gtest.h>

#include <cmath>
#include <numbers>

#include "analysis/power.h"
#include "analysis/summary.h"
#include "method_sweep.h"

namespace harness::method {
namespace {

struct Counts {
  int unresolved = 0, two_states = 0;
};

Counts expect_rounds_of_page(const store::Result& file) {
  const analysis::Summary summary = analysis::summarise(file);
  const std::vector<PageAnswer> answers = answers_of(file, by_level);
  Counts counts;
  for (int i = 2; i < file.case_count(); ++i) {
    SCOPED_TRACE(file.cases[i].name);
    const PageAnswer& page = answers[i];
    const analysis::Effect& effect = *summary.case_at(i).effect;
    EXPECT_EQ(effect.verdict, page.verdict);
    if (page.verdict != analysis::Verdict::unresolved) continue;
    ++counts.unresolved;
    const PageModel model(page.blocks);
    const PageContrast contrast{{i - 1, 1}, {0, -1}};
    EXPECT_EQ(effect.rounds_needed, model.rounds_to_settle(contrast, page.alpha, file.smallest_effect));
    EXPECT_EQ(effect.two_states, model.reaches(contrast, page.alpha));
    counts.two_states += effect.two_states;
  }
  return counts;
}

TEST(MethodPower, TheRoundsThatWouldSettleACaseFollowFromThePage) {
  store::Result file = example();
  file.smallest_effect = 0.02;
  EXPECT_GE(expect_rounds_of_page(file).unresolved, 2);
}

// Two of the first five blocks of a case take 60 % longer.
TEST(MethodPower, BlocksInAnotherStateNeedRoundsThatTellThemApart) {
  struct Planted {
    int case_index, first_round, second_round;
  };
  int two_states = 0;
  for (const Planted& planted : {Planted{2, 0, 1}, Planted{4, 3, 4}, Planted{6, 1, 2}, Planted{7, 0, 2}}) {
    SCOPED_TRACE(planted.case_index);
    const store::Result file = changed(example(), "two states", [&](const store::ResultBlock& block) {
      const bool slow = block.round == planted.first_round || block.round == planted.second_round;
      return block.case_index == planted.case_index && slow ? std::log(1.6) : 0;
    });
    two_states += expect_rounds_of_page(file).two_states;
  }
  EXPECT_GE(two_states, 4);
}

double standard_normal_tail(double z) {
  return std::erfc(z / std::numbers::sqrt2) / 2;
}

double simpson(double from, double to, int n, auto&& f) {
  double sum = f(from) + f(to);
  for (int i = 1; i < n; ++i) sum += (i % 2 == 1 ? 4 : 2) * f(from + (to - from) * i / n);
  return sum * (to - from) / n / 3;
}

// P((Z + delta) / sqrt(X² / f) > t), X² being chi-squared with f degrees of freedom.
double noncentral_t_tail(double t, double delta, double f) {
  const auto density_of_X = [&](double x) {
    return std::exp((1 - f / 2) * std::numbers::ln2 + (f - 1) * std::log(x) - x * x / 2 - std::lgamma(f / 2));
  };
  return simpson(1e-9, std::sqrt(f) + 10, 2000,
                 [&](double x) { return density_of_X(x) * standard_normal_tail(t * x / std::sqrt(f) - delta); });
}

// Of a standard normal value that is replaced by the nearer of the two quantiles if it lies beyond them.
double winsorised_variance(double tail) {
  double z = 0, high = 10;
  for (int i = 0; i < 60; ++i) (standard_normal_tail((z + high) / 2) > tail ? z : high) = (z + high) / 2;
  const double inside =
      2 * simpson(0, z, 1000, [](double x) { return x * x * std::exp(-x * x / 2) / std::sqrt(2 * std::numbers::pi); });
  return inside + 2 * tail * z * z;
}

// What the page's noncentral t exceeds its bound by in four sweeps of five.
void expect_found_in_four_of_five(double effect, double e, double error, double degrees, double alpha) {
  const double delta = (std::log(1 + effect) - std::log(1 + e)) / error;
  EXPECT_NEAR(noncentral_t_tail(student_t(1 - alpha / 2, degrees), delta, degrees), 0.8, 1e-6);
}

TEST(MethodPower, TheEffectThatPlanPromisesIsFoundInFourSweepsOfFive) {
  constexpr double sigma = 0.013, e = 0.02;
  for (const int comparisons : {1, 11}) {
    const double alpha = 0.05 / comparisons;
    for (const int n : {4, 5, 12, 27}) {
      SCOPED_TRACE(n);
      const double level = analysis::resolvable_effect(n, comparisons, sigma, e, 0.95);
      const double plain = sigma * std::sqrt(1.5 / n);
      if (n < 5) {
        expect_found_in_four_of_five(level, e, plain, n - 1, alpha);
      } else {
        const double f = 2.25 / (1 / (2.0 * n - 2) + 0.25 / (3.0 * n - 2));
        expect_found_in_four_of_five(level, e, plain * (1 + 0.13 / std::sqrt(n - 1)), f, alpha);
      }
      const double pairs = analysis::resolvable_effect_of_pairs(n, comparisons, sigma, e, 0.95);
      const int g = n / 5;
      const double share = static_cast<double>(g) / n, W = g == 0 ? 1 : winsorised_variance(share);
      expect_found_in_four_of_five(pairs, e, sigma * std::sqrt(W / n) / (1 - 2 * share), n - 2 * g - 1, alpha);
    }
  }
}

}  // namespace
}  // namespace harness::method
