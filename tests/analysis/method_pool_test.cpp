// "Pooling runs" of docs/method.md, recomputed for copies of the example that take other times.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "analysis/pooled.h"
#include "method_files.h"

namespace harness::method {
namespace {

// Cochran's Q and Welch's F of the runs' own intervals.
double page_p(const std::vector<PageInterval>& runs) {
  double W = 0, m = 0, Q = 0, L = 0;
  for (const PageInterval& run : runs) W += 1 / (run.error * run.error);
  for (const PageInterval& run : runs) m += run.center / (run.error * run.error) / W;
  for (const PageInterval& run : runs) {
    const double w = 1 / (run.error * run.error);
    Q += w * std::pow(run.center - m, 2);
    L += std::pow(1 - w / W, 2) / run.degrees;
  }
  const auto k = static_cast<double>(runs.size());
  const double F = Q / (k - 1) / (1 + 2 * (k - 2) * L / (k * k - 1));
  return f_tail(F, k - 1, (k * k - 1) / (3 * L));
}

struct Differing {
  int cases = 0;         // whose runs differ
  int too_little = 0;    // by less than matters
  int not_provably = 0;  // by more than matters, perhaps by chance
};

// Of runs in which case 3 differs a lot and cases 2 and 5 a little. Those from the third on rest on pairs, the others
// on the level; the second and the third declare other confidences.
Differing expect_pool(int runs, double e) {
  PageFiles files;
  std::vector<std::vector<PageAnswer>> answers;
  for (int run = 0; run < runs; ++run) {
    store::Result file = another_run(run, [&](int c) {
      constexpr double by_run[] = {0, 0, 0.024, 0.12, 0, 0.024};
      return (c < 6 ? by_run[c] : 0) * run + 0.004 * philox_normal(9, 16 * run + c);
    });
    file.smallest_effect = e;
    constexpr double confidences[] = {0.95, 0.9, 0.97};
    file.confidence = run < 3 ? confidences[run] : 0.95;
    if (run >= 2) file.interval = "pairs";
    answers.push_back(answers_of(file, run >= 2 ? by_pairs : by_level));
    files.add(file);
    EXPECT_FALSE(files.summaries.back().unreliable);
  }
  const analysis::Pool pool = analysis::pool_runs(files.list);
  EXPECT_EQ(pool.cases.size(), example().cases.size());
  const int changes = example().case_count() - 2, tested = changes + 1;
  Differing differing;
  for (int c = 1; c < example().case_count(); ++c) {
    const analysis::PooledCase& row = pool.cases.at(static_cast<std::size_t>(c));
    SCOPED_TRACE(row.name);
    std::vector<PageInterval> y;
    double mean = 0, squares = 0;
    for (const auto& of_run : answers) {
      y.push_back(of_run[c].interval);
      mean += y.back().center / runs;
    }
    for (const PageInterval& run : y) squares += std::pow(run.center - mean, 2);
    const double s = std::sqrt(squares / (runs - 1)), alpha = (1 - 0.97) / (c == 1 ? 1 : changes);
    const PageInterval page = t_interval(mean, s / std::sqrt(runs), runs - 1, alpha);
    EXPECT_NEAR(std::log(row.ratio), page.center, 1e-7);
    EXPECT_NEAR(std::log(row.low), page.low, 1e-6);
    EXPECT_NEAR(std::log(row.high), page.high, 1e-6);
    EXPECT_EQ(row.judgement.verdict, verdict(page, e));
    const double p = page_p(y);
    EXPECT_NEAR(row.runs_differ_p.value_or(-1) / p, 1, 1e-3);
    const auto [least, most] = std::ranges::minmax(y, {}, &PageInterval::center);
    const bool proven = p<(1 - 0.97) / tested, matters = most.center - least.center> std::log(1 + e);
    EXPECT_EQ(row.runs_differ, proven && matters);
    differing.cases += row.runs_differ;
    differing.too_little += proven && !matters;
    differing.not_provably += matters && !proven;
  }
  return differing;
}

TEST(MethodPool, IntervalsAndDifferencesOfRunsFollowFromThePage) {
  const Differing four = expect_pool(4, 0.1);
  EXPECT_EQ(four.cases, 1);
  EXPECT_GE(four.too_little, 1);
  EXPECT_GE(expect_pool(3, 0.02).not_provably, 1);
}

}  // namespace
}  // namespace harness::method
