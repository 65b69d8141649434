#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "analysis/comparison.h"
#include "analysis/verdict.h"
#include "base/random.h"
#include "base/text.h"
#include "support/errors.h"
#include "support/sample_files.h"
#include "support/sample_results.h"

namespace harness::analysis {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

struct Runs : test::SampleFiles {
  void add(store::Result result) { SampleFiles::add(fmt::format("r{}", list.size()), std::move(result)); }
};

const std::vector<std::string> pooled_changes{"micro_batch_size=2", "overlap_grad_reduce=false"};

Runs three_runs() {
  Runs runs;
  for (const double ratio : {0.9, 0.91, 0.905})
    runs.add(test::samples::sweep(pooled_changes, {1, 1, ratio, 1.2 * ratio}));
  return runs;
}

PooledCase find(const Pool& pool, const std::string& name) {
  const auto found = std::ranges::find(pool.cases, name, &PooledCase::name);
  if (found == pool.cases.end()) throw std::logic_error("no " + name);
  return *found;
}

std::string refusal(const std::vector<ComparedFile>& files) {
  return test::error_of([&] { pool_runs(files); });
}

TEST(Pooled, TheIntervalIsStudentsTOverTheRunsRatios) {
  const Runs runs = three_runs();
  const Pool pool = pool_runs(runs.list);
  EXPECT_EQ(pool.comparisons, 2);
  EXPECT_FALSE(pool.unreliable);
  const PooledCase row = find(pool, "micro_batch_size=2");
  ASSERT_EQ(row.n, 3);
  std::vector<double> logs;
  for (std::size_t i = 0; i < 3; ++i) {
    const Effect& own = runs.summaries[i].cases[2].effect.value();
    EXPECT_DOUBLE_EQ(row.runs[i].ratio, own.ratio);
    logs.push_back(std::log(own.ratio));
  }
  const double mean = (logs[0] + logs[1] + logs[2]) / 3;
  const double half = student_t_quantile(1 - 0.05 / 2 / 2, 2) * standard_deviation(logs) / std::sqrt(3.0);
  EXPECT_NEAR(std::log(row.ratio), mean, 1e-12);
  EXPECT_NEAR(std::log(row.low), mean - half, 1e-9);
  EXPECT_NEAR(std::log(row.high), mean + half, 1e-9);
  EXPECT_EQ(row.judgement.verdict, Verdict::faster);
  EXPECT_EQ(find(pool, "baseline").judgement.reason, Reason::baseline);
  EXPECT_EQ(find(pool, "baseline").n, 3);
}

TEST(Pooled, EveryRunIsSureOfItselfAndTheyDisagree) {
  Runs runs;
  for (const double ratio : {0.8, 0.9, 1.0}) runs.add(test::samples::sweep({"precision=bf16"}, {1, 1, ratio}));
  const Pool pool = pool_runs(runs.list);
  const PooledCase row = find(pool, "precision=bf16");
  EXPECT_EQ(row.judgement.verdict, Verdict::unresolved);
  EXPECT_TRUE(row.runs_differ);
  EXPECT_FALSE(find(pool, "baseline_again").runs_differ);
}

TEST(Pooled, RunsThatDifferByLessThanMattersAreNotMarked) {
  Runs runs;
  for (const double ratio : {0.900, 0.903, 0.906}) runs.add(test::samples::sweep({"precision=bf16"}, {1, 1, ratio}));
  EXPECT_FALSE(find(pool_runs(runs.list), "precision=bf16").runs_differ);
}

TEST(Pooled, AControlThatMovesOverTheRunsIsFoundWhereNoRunFindsIt) {
  Runs runs;
  const std::vector<double> ratios{1.013, 1.014, 1.0135, 1.0138};
  for (const double ratio : ratios) {
    runs.add(test::samples::sweep({"precision=bf16"}, {1, ratio, 0.9}));
    runs.summaries.back().unreliable = false;
  }
  const Pool pool = pool_runs(runs.list);
  EXPECT_TRUE(pool.unreliable);
  EXPECT_EQ(find(pool, "baseline_again").judgement.verdict, Verdict::slower);
}

TEST(Pooled, ACaseOfSomeRunsIsPooledOverThem) {
  Runs runs = three_runs();
  runs.add(test::samples::sweep({"micro_batch_size=2", "precision=bf16"}, {1, 1, 0.9, 0.7}));
  runs.results[0].cases[3].reason = "as ever";
  const Pool pool = pool_runs(runs.list);
  EXPECT_EQ(pool.comparisons, 3);
  std::vector<std::string> names;
  for (const PooledCase& row : pool.cases) names.push_back(row.name);
  EXPECT_THAT(names, ElementsAre("baseline", "baseline_again", "micro_batch_size=2", "overlap_grad_reduce=false",
                                 "precision=bf16"));
  EXPECT_EQ(find(pool, "micro_batch_size=2").n, 4);
  EXPECT_EQ(find(pool, "overlap_grad_reduce=false").n, 3);
  EXPECT_EQ(find(pool, "precision=bf16").n, 1);
  EXPECT_EQ(find(pool, "precision=bf16").judgement.verdict, Verdict::none);
  EXPECT_NEAR(find(pool, "precision=bf16").ratio, 0.7, 0.01);
}

TEST(Pooled, ARunWhereNcclDidSomethingElseDoesNotCountAndSaysSo) {
  Runs runs;
  for (int run = 0; run < 4; ++run) {
    store::Result result = test::samples::sweep(pooled_changes, {1, 1, run == 3 ? 1.5 : 0.9 + 0.001 * run, 1});
    if (run == 3) result.nccl_facts.push_back({2, "not honoured", "asked for Tree, got Ring"});
    runs.add(std::move(result));
  }
  const PooledCase row = find(pool_runs(runs.list), "micro_batch_size=2");
  EXPECT_EQ(row.n, 3);
  EXPECT_EQ(row.runs.size(), 4u);
  EXPECT_EQ(row.judgement.verdict, Verdict::faster);
  EXPECT_THAT(row.remarks, ElementsAre("not honoured: asked for Tree, got Ring (r3)"));
}

TEST(Pooled, WhatFailedOrCannotRunInEveryRunIsNamedSo) {
  Runs runs;
  for (int run = 0; run < 3; ++run) runs.add(test::samples::everything());
  const Pool pool = pool_runs(runs.list);
  EXPECT_EQ(pool.comparisons, 6);  // one of seven is impossible
  EXPECT_EQ(find(pool, "layout={tensor_parallel: 2}").judgement.reason, Reason::failed);
  EXPECT_EQ(find(pool, "layout={pipeline_parallel: 8}").judgement.reason, Reason::impossible);
  EXPECT_THAT(find(pool, "precision=bf16").remarks, ElementsAre("bf16 is emulated on this CPU"));  // once, not thrice
}

TEST(Pooled, TheStrictestConfidenceCounts) {
  Runs runs = three_runs();
  const double narrow = find(pool_runs(runs.list), "micro_batch_size=2").high;
  runs.results[1].confidence = 0.99;
  const Pool pool = pool_runs(runs.list);
  EXPECT_EQ(pool.confidence, 0.99);
  EXPECT_GT(find(pool, "micro_batch_size=2").high, narrow);
}

TEST(Repeats, WhatIsNoRepeatIsRefusedInOneLine) {
  const auto with = [](const std::function<void(store::Result&)>& change) {
    Runs runs = three_runs();
    store::Result other = test::samples::sweep(pooled_changes, {1, 1, 0.9, 1});
    change(other);
    runs.add(std::move(other));
    return refusal(runs.list);
  };
  EXPECT_EQ(with([](store::Result&) {}), "");
  EXPECT_EQ(with([](store::Result& r) { r.seed = 7, r.rounds = 9, r.identity = {{"driver", "580"}}; }), "");
  EXPECT_THAT(with([](store::Result& r) { r.ranks = 8; }), HasSubstr("Numbers of ranks differ: 4 in r0, 8 in r3"));
  EXPECT_THAT(with([](store::Result& r) { r.model.hidden = 256; }), HasSubstr("Models differ"));
  EXPECT_THAT(with([](store::Result& r) { r.backend = "cuda"; }), HasSubstr("Backends differ: cpu in r0, cuda in r3"));
  const auto bf16 = [](store::Result& r) {
    for (store::ResultCase& row : r.cases) row.settings[0] = "bf16";
  };
  EXPECT_THAT(with(bf16), HasSubstr("baseline has other settings: precision is fp32 and bf16 in r0 and r3"));
  EXPECT_THAT(with(bf16), Not(HasSubstr("micro_batch_size")));  // said once
  EXPECT_THAT(with([](store::Result& r) { r.cases[2].settings[3] = "false"; }),
              HasSubstr("micro_batch_size=2 has other settings: overlap_grad_reduce is true and false in r0 and r3"));
  EXPECT_THAT(with([](store::Result& r) { r.cases[0].name = "base"; }), HasSubstr("r3 has no baseline"));
}

TEST(Reproduction, ComparesWhatChangesDidAndNotTimes) {
  test::SampleFiles files;
  const std::vector<std::string> changes{"micro_batch_size=2", "overlap_grad_reduce=false", "precision=bf16",
                                         "ranks=2"};
  const ComparedFile old_one = files.add("old", test::samples::sweep(changes, {1, 1, 0.9, 1.1, 0.8, 1.01}));
  // A cluster that is three times as fast.
  const ComparedFile new_one =
      files.add("new", test::samples::scaled(test::samples::sweep(changes, {1, 1, 0.91, 0.9, 1, 1.5}), 0.33));
  const Reproduction r = reproduce(old_one, new_one);
  ASSERT_EQ(r.changes.size(), 4u);
  EXPECT_EQ(r.changes[0].reproduced, Reproduced::yes);
  EXPECT_EQ(r.changes[1].reproduced, Reproduced::opposite);
  EXPECT_EQ(r.changes[2].reproduced, Reproduced::no);
  EXPECT_EQ(r.changes[3].reproduced, Reproduced::undecided);  // 1 % in the old file: not resolved
  EXPECT_NEAR(r.changes[0].first.ratio, 0.9, 0.001);
  EXPECT_EQ(r.changes[0].second.n, 12);
  EXPECT_EQ(reproduce(old_one, files.add("none", test::samples::sweep({}, {1, 1}))).only_in_one.size(), 4u);
}

TEST(Reproduction, ComparesASettingAtEachSizeOfAnOperation) {
  test::SampleFiles files;
  const auto add = [&](const char* name) {
    return files.add(
        name, test::samples::sweep({"message_size=1 GB", "in_place=false", "in_place=false at message_size=1 GB"},
                                   {1, 1, 100, 0.8, 150}));
  };
  const ComparedFile old_one = add("old"), new_one = add("new");
  const Reproduction r = reproduce(old_one, new_one);
  ASSERT_EQ(r.changes.size(), 2u);
  EXPECT_EQ(r.changes[0].second.judgement.verdict, Verdict::faster);
  EXPECT_EQ(r.changes[1].second.judgement.verdict, Verdict::slower);
  EXPECT_EQ(r.changes[1].reproduced, Reproduced::yes);
}

// One run per factor, which scales the times of the baseline or of the one change.
struct Series : test::SampleFiles {
  Series(const std::vector<double>& baseline, const std::vector<double>& change) {
    for (std::size_t run = 0; run < baseline.size(); ++run) {
      store::Result result = test::samples::sweep({"micro_batch_size=2"}, {1, 1, 0.9}, 3);
      result.run_uuid = fmt::format("run {}", run);
      result.created = fmt::format("2026-01-{:02}T03:00:00Z", run + 1);
      for (std::size_t block = 0; block < result.blocks.size(); ++block) {
        const bool changed = result.blocks[block].case_index == 2;
        for (float& s : result.step_seconds[block]) s *= static_cast<float>((changed ? change : baseline)[run]);
      }
      add(fmt::format("r{}", run), std::move(result));
    }
  }
};

// The factors of as many runs, with noise; those of the run `from` and of later ones are `change` times as large.
std::vector<double> noisy(std::size_t runs, std::uint64_t key, double sigma, std::size_t from = 0, double change = 1) {
  std::vector<double> factors;
  for (std::size_t run = 0; run < runs; ++run)
    factors.push_back(std::exp(sigma * philox_normal(key, run)) * (run < from ? 1 : change));
  return factors;
}

TEST(History, TheStatisticIsTheOneOfTheHeader) {
  // By hand: deviations -1, -1, 1, 1; k = 2: 2 * 2 / 4 * (0 - 2)^2 / 4 = 1.
  const auto half = largest_shift(std::vector<double>{0, 0, 2, 2});
  EXPECT_EQ(half.first_after, 2u);
  EXPECT_NEAR(half.statistic, 1, 1e-12);
  // 1, 2, 4: mean 7/3, sum of squares 14/3; k = 2: 2 / 3 * (1.5 - 4)^2 = 25/6; k = 1: 2 / 3 * (1 - 3)^2 = 8/3.
  const auto three = largest_shift(std::vector<double>{1, 2, 4});
  EXPECT_EQ(three.first_after, 2u);
  EXPECT_NEAR(three.statistic, (25.0 / 6) / (14.0 / 3), 1e-12);
  EXPECT_EQ(largest_shift(std::vector<double>{3, 3, 3}).statistic, 0);
}

TEST(History, AStepIsNamedBetweenTheRunsWhereItHappenedAndOnlyInItsCase) {
  Series series(noisy(12, 1, 0.005), noisy(12, 2, 0.005, 7, 1.1));
  std::swap(series.list[0], series.list[9]);  // the order of the arguments does not matter
  const History history = find_history(series.list);
  ASSERT_EQ(history.cases.size(), 3u);
  EXPECT_EQ(history.files.front().label, "r0");
  EXPECT_EQ(history.cases[0].verdict, Verdict::unresolved);
  const CaseHistory& moved = history.cases[2];
  EXPECT_EQ(moved.name, "micro_batch_size=2");
  EXPECT_EQ(moved.verdict, Verdict::slower);
  ASSERT_TRUE(moved.largest);
  EXPECT_EQ(moved.largest->before, 6u);
  EXPECT_EQ(moved.largest->run, 7u);
  EXPECT_EQ(history.clearest(), &moved);
  EXPECT_NEAR(moved.largest->ratio, 1.1, 0.01);
  EXPECT_LT(moved.largest->p, 0.01);
}

TEST(History, SmallAndShortChangesAreNotAlarms) {
  // The first is below the smallest effect of 1 %, and proven. The second is of the last run alone.
  Series series(noisy(10, 1, 0, 5, 1.004), noisy(10, 3, 0.002, 9, 1.5));
  const History history = find_history(series.list);
  EXPECT_EQ(history.cases[0].verdict, Verdict::same);
  EXPECT_EQ(history.cases[2].verdict, Verdict::unresolved);
  EXPECT_GT(history.cases[2].largest->p, 0.1);
}

TEST(History, TooFewRunsHaveNoVerdict) {
  const std::vector<double> seven{1, 1, 1, 1, 2, 2, 2};
  Series series(seven, seven);
  const History history = find_history(series.list);
  for (const CaseHistory& row : history.cases) {
    EXPECT_EQ(row.verdict, Verdict::none);
    EXPECT_FALSE(row.largest);
  }
  series.list.push_back(series.list.front());
  EXPECT_THROW(find_history(series.list), Error);  // a run counts once
}

TEST(History, ACaseThatSomeRunsDidNotMeasureIsPlacedByItsOwnRuns) {
  Series series(noisy(12, 4, 0.01), noisy(12, 5, 0.005, 6, 0.8));
  for (store::ResultBlock& block : series.results[6].blocks) {
    if (block.case_index == 2) block.status = store::BlockStatus::failed;
  }
  series.summaries[6] = summarise(series.results[6]);
  const History history = find_history(series.list);
  EXPECT_TRUE(std::isnan(history.cases[2].seconds[6]));
  EXPECT_EQ(history.cases[2].verdict, Verdict::faster);
  EXPECT_EQ(history.cases[2].largest->before, 5u);
  EXPECT_EQ(history.cases[2].largest->run, 7u);
}

// The declared error: among series without a change, at most 5 % report one, in any case.
TEST(History, NamesAChangeWhereThereIsNoneAsRarelyAsItSays) {
  constexpr int series_count = 60;
  int named = 0;
  for (std::uint64_t i = 0; i < series_count; ++i) {
    const Series series(noisy(10, 100 + 2 * i, 0.02), noisy(10, 101 + 2 * i, 0.05));
    const auto is_named = [](const CaseHistory& row) { return row.verdict != Verdict::unresolved; };
    named += std::ranges::any_of(find_history(series.list).cases, is_named) ? 1 : 0;
  }
  EXPECT_LE(named, 8);  // 3 expected; more than 8 of 60 in one of 200 trials
}

}  // namespace
}  // namespace harness::analysis
