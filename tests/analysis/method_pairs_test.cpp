// "Pairs within rounds" of docs/method.md, the exact interval of the median, and the rounds that would settle them.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "analysis/summary.h"
#include "method_sweep.h"
#include "support/sample_results.h"

namespace harness::method {
namespace {

constexpr double pairs_tolerance = 1e-9;

std::vector<std::pair<int, double>> against_baseline(int case_index) {
  return {{case_index, 1}, {0, -1}};
}

// "k-th smallest and k-th largest d, with k as large as P(Binomial(n, 1/2) < k) <= alpha / 2 allows".
std::vector<PageInterval> by_sign(const std::vector<PageBlock>& blocks, const std::vector<int>& cases, double alpha) {
  constexpr double infinite = std::numeric_limits<double>::infinity();
  std::vector<PageInterval> intervals;
  for (const int c : cases) {
    std::vector<double> d = within_rounds(blocks, against_baseline(c));
    std::ranges::sort(d);
    const int n = static_cast<int>(d.size());
    int k = 0;
    while (k < n / 2 && 1 - binomial_tail(n, k + 1, 0.5) <= alpha / 2) ++k;
    const bool has_ends = k > 0;
    intervals.push_back({median(d), has_ends ? d[k - 1] : -infinite, has_ends ? d[n - k] : infinite, NAN, NAN});
  }
  return intervals;
}

int kept(int n) {
  return n - 2 * (n / 5);
}

// "The least n > r for which …"
int rounds_to_settle(const std::vector<double>& d, double alpha, double e) {
  const Trimmed now = trimmed(d);
  const double distance = std::abs(std::abs(now.mean) - std::log(1 + e));
  for (int n = now.n + 1; n < 1000; ++n) {
    const double error = std::sqrt(now.d * now.h / kept(n));
    if (t_tails(distance / error, kept(n) - 1) < alpha) return n;
  }
  return 1000;
}

struct Seen {
  int settled = 0, unresolved = 0, endless = 0;
};

Seen expect_page(const store::Result& file, analysis::EstimatorKind kind) {
  const bool sign = kind == analysis::EstimatorKind::sign;
  const analysis::Summary summary = analysis::summarise(file, {.estimator = kind});
  const std::vector<PageAnswer> answers = answers_of(file, sign ? by_sign : by_pairs);
  Seen seen;
  for (int i = 1; i < file.case_count(); ++i) {
    SCOPED_TRACE(file.cases[i].name);
    const analysis::CaseSummary& row = summary.case_at(i);
    const PageAnswer& page = answers[i];
    const std::vector<double> d = within_rounds(page.blocks, against_baseline(i));
    EXPECT_EQ(row.effect->rounds, static_cast<int>(d.size()));
    EXPECT_NEAR(std::log(row.effect->ratio), page.interval.center, pairs_tolerance);
    if (std::isfinite(page.interval.low)) {
      EXPECT_NEAR(std::log(row.effect->low), page.interval.low, pairs_tolerance);
      EXPECT_NEAR(std::log(row.effect->high), page.interval.high, pairs_tolerance);
    } else {
      EXPECT_EQ(row.effect->low, 0);
      EXPECT_EQ(row.effect->high, std::numeric_limits<double>::infinity());
      ++seen.endless;
    }
    if (!sign) {
      EXPECT_NEAR(row.effect->standard_error, page.interval.error, pairs_tolerance);
      EXPECT_EQ(row.effect->degrees, page.interval.degrees);
    }
    EXPECT_EQ(row.judgement.verdict, page.verdict);
    if (i > 1) {
      EXPECT_EQ(row.settled_after, page.settled_after);
      seen.settled += page.settled_after > 0;
    }
    if (page.verdict != analysis::Verdict::unresolved) continue;
    ++seen.unresolved;
    int needed = rounds_to_settle(d, page.alpha, file.smallest_effect);
    if (sign) needed = std::max(needed, static_cast<int>(std::ceil(1 + std::log2(1 / page.alpha))));
    EXPECT_EQ(row.effect->rounds_needed, needed);
  }
  return seen;
}

TEST(MethodPairs, YuensIntervalsOfTheExampleFollowFromThePage) {
  const Seen seen = expect_page(example(), analysis::EstimatorKind::pairs);
  EXPECT_GE(seen.settled, 1);
  EXPECT_GE(seen.unresolved, 4);
}

TEST(MethodPairs, WithFewRoundsTheSignIntervalOfTheExampleHasNoEnds) {
  const Seen seen = expect_page(example(), analysis::EstimatorKind::sign);
  EXPECT_EQ(seen.endless, example().case_count() - 2);  // the control alone has the error to itself
}

// A sweep without looks. Some blocks are lost, and another session begins in the middle of a round.
TEST(MethodPairs, RoundsThatLackABlockOrSpanSessionsDoNotCount) {
  store::Result file = test::samples::sweep({"precision=bf16", "micro_batch_size=2", "overlap_grad_reduce=false"},
                                            {1, 1.001, 0.95, 1.013, 1.003}, 17);
  for (std::size_t i = 0; i < file.blocks.size(); ++i) {
    store::ResultBlock& block = file.blocks[i];
    block.session = i > 62 ? 1 : 0;
    if (i % 13 == 3) block.status = store::BlockStatus::failed;
  }
  file.smallest_effect = 0.012;
  expect_page(file, analysis::EstimatorKind::pairs);
  const Seen seen = expect_page(file, analysis::EstimatorKind::sign);
  EXPECT_EQ(seen.endless, 0);
  EXPECT_GE(seen.unresolved, 1);
}

}  // namespace
}  // namespace harness::method
