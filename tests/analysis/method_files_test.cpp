// "Comparing files" of docs/method.md, recomputed for copies of the example that take other times.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "analysis/comparison.h"
#include "analysis/history.h"
#include "base/random.h"
#include "method_files.h"

namespace harness::method {
namespace {

std::vector<double> logs_of_blocks(const store::Result& file, int case_index) {
  std::vector<double> logs;
  for (const auto& [i, seconds] : block_medians(file)) {
    if (file.blocks[i].case_index == case_index) logs.push_back(std::log(seconds));
  }
  return logs;
}

// "difference of the trimmed means ± t(1 - alpha / 2; f) sqrt(d_A + d_B)".
PageInterval welch(const std::vector<double>& first, const std::vector<double>& second, double alpha) {
  const Trimmed A = trimmed(first), B = trimmed(second);
  const double f = std::pow(A.d + B.d, 2) / (A.d * A.d / (A.h - 1) + B.d * B.d / (B.h - 1));
  return t_interval(B.mean - A.mean, std::sqrt(A.d + B.d), f, alpha);
}

void expect_row(const analysis::CaseComparison& row, const PageInterval& page, double e) {
  EXPECT_NEAR(std::log(row.ratio), page.center, 1e-7);
  EXPECT_NEAR(std::log(row.low), page.low, 1e-7);
  EXPECT_NEAR(std::log(row.high), page.high, 1e-7);
  EXPECT_EQ(row.judgement.verdict, verdict(page, e));
}

TEST(MethodFiles, OneRunASideComparesBlocks) {
  PageFiles files;
  files.add(example());
  store::Result other = another_run(1, [](int c) { return std::log(1.12) - 0.01 * c; });
  other.cases[4].tokens_per_step *= 2;  // "times are per token"
  files.add(other);
  const std::span all(files.list);
  const analysis::Comparison comparison = analysis::compare_sides(all.first(1), all.last(1));
  EXPECT_FALSE(comparison.between_runs);
  ASSERT_EQ(comparison.cases.size(), example().cases.size());
  std::set<analysis::Verdict> verdicts;
  for (int c = 0; c < example().case_count(); ++c) {
    SCOPED_TRACE(comparison.cases[c].name);
    std::vector<double> second = logs_of_blocks(files.results[1], c);
    for (double& value : second) value -= c == 4 ? std::log(2) : 0;
    const double alpha = 0.05 / example().case_count();
    const PageInterval page = welch(logs_of_blocks(example(), c), second, alpha);
    expect_row(comparison.cases[c], page, example().smallest_effect);
    verdicts.insert(comparison.cases[c].judgement.verdict);
  }
  EXPECT_GE(verdicts.size(), 2u);
}

// Three runs against six, of which Yuen's rule leaves four.
TEST(MethodFiles, ThreeRunsASideCompareRuns) {
  PageFiles files;
  for (int run = 0; run < 9; ++run) {
    files.add(
        another_run(run, [&](int c) { return (run < 3 ? 0 : 0.03 * c) + 0.02 * philox_normal(3, 16 * run + c); }));
  }
  const std::span all(files.list);
  const analysis::Comparison comparison = analysis::compare_sides(all.first(3), all.last(6));
  EXPECT_TRUE(comparison.between_runs);
  ASSERT_EQ(comparison.cases.size(), example().cases.size());
  for (int c = 0; c < example().case_count(); ++c) {
    SCOPED_TRACE(comparison.cases[c].name);
    std::vector<double> logs;
    for (const store::Result& file : files.results) logs.push_back(std::log(step_time(file, c)));
    const std::vector<double> first(logs.begin(), logs.begin() + 3), second(logs.begin() + 3, logs.end());
    expect_row(comparison.cases[c], welch(first, second, 0.05 / example().case_count()), example().smallest_effect);
  }
}

// "compare --history": the largest T of a series, and its k.
struct Change {
  double T = 0;
  std::size_t k = 0;
};

Change largest_change(const std::vector<double>& y) {
  const double n = static_cast<double>(y.size()), mean = std::accumulate(y.begin(), y.end(), 0.0) / n;
  double squares = 0;
  for (const double value : y) squares += (value - mean) * (value - mean);
  Change largest;
  double sum = 0;
  for (std::size_t i = 1; i < y.size(); ++i) {
    sum += y[i - 1];
    const double k = static_cast<double>(i), first = sum / k, others = (n * mean - sum) / (n - k);
    const double T = k * (n - k) / n * (first - others) * (first - others) / squares;
    if (T > largest.T) largest = {T, i};
  }
  return largest;
}

TEST(MethodFiles, AHistoryNamesThePlaceOfTheLargestT) {
  constexpr std::size_t n = 8;
  PageFiles files;
  for (std::size_t run = 0; run < n; ++run) {
    store::Result file = another_run(static_cast<int>(run), [&](int c) {
      const bool later = c % 3 == 1 && run >= 4;
      return (later ? 0.15 : 0) + 0.02 * philox_normal(4, 16 * run + static_cast<std::size_t>(c));
    });
    file.created = "2026-03-0" + std::to_string(n - run) + "T00:00:00Z";  // the last is the oldest
    files.add(file);
  }
  const analysis::History history = analysis::find_history(files.list);
  ASSERT_EQ(history.cases.size(), example().cases.size());
  std::vector<std::vector<double>> y(history.cases.size());
  std::vector<Change> changes;
  for (int c = 0; c < example().case_count(); ++c) {
    for (std::size_t run = n; run-- > 0;) y[c].push_back(std::log(step_time(files.results[run], c)));
    changes.push_back(largest_change(y[c]));
  }
  // p, by all 8! orders instead of some: of the largest T of any case.
  std::vector<double> reached(y.size(), 0);
  std::vector<std::size_t> order(n);
  std::iota(order.begin(), order.end(), std::size_t{0});
  double orders = 0;
  std::vector<double> permuted(n);
  do {
    double largest = 0;
    for (const std::vector<double>& of_case : y) {
      for (std::size_t i = 0; i < n; ++i) permuted[i] = of_case[order[i]];
      largest = std::max(largest, largest_change(permuted).T);
    }
    for (std::size_t c = 0; c < y.size(); ++c) reached[c] += largest >= changes[c].T - 1e-9;
    ++orders;
  } while (std::ranges::next_permutation(order).found);
  std::set<analysis::Verdict> verdicts;
  for (std::size_t c = 0; c < y.size(); ++c) {
    SCOPED_TRACE(history.cases[c].name);
    ASSERT_TRUE(history.cases[c].largest);
    const analysis::ChangePoint& program = *history.cases[c].largest;
    const auto [T, k] = changes[c];
    EXPECT_EQ(program.run, k);
    EXPECT_NEAR(analysis::largest_shift(y[c])->statistic, T, 1e-9);
    const auto middle = y[c].begin() + static_cast<std::ptrdiff_t>(k);
    const double before = std::accumulate(y[c].begin(), middle, 0.0) / static_cast<double>(k);
    const double after = std::accumulate(middle, y[c].end(), 0.0) / static_cast<double>(n - k);
    EXPECT_NEAR(program.ratio, std::exp(after - before), 1e-9);
    const double p = reached[c] / orders;
    EXPECT_NEAR(program.p, p, 4 * std::sqrt(p * (1 - p) / 9999) + 2e-4);
    analysis::Verdict expected = analysis::Verdict::unresolved;
    if (program.p <= 0.05) {
      const double size = after - before;
      expected = verdict({size, size, size, 0, 0}, example().smallest_effect);
    }
    EXPECT_EQ(history.cases[c].verdict, expected);
    verdicts.insert(expected);
  }
  EXPECT_EQ(verdicts, (std::set{analysis::Verdict::faster, analysis::Verdict::unresolved}));
}

}  // namespace
}  // namespace harness::method
