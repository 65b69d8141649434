#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <random>

#include "analysis/findings.h"
#include "analysis/published.h"
#include "config/model.h"
#include "config/registry.h"
#include "random_timeline.h"
#include "support/sample_results.h"

namespace harness::analysis {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::StartsWith;

TEST(Findings, MoreRanksAreNoImprovement) {
  const Findings both = find_all(test::samples::sweep({"ranks=2", "micro_batch_size=2"}, {1, 1, 0.5, 0.8}));
  ASSERT_NE(both.best(), nullptr);
  EXPECT_EQ(both.best()->name, "micro_batch_size=2");
  EXPECT_EQ(find_all(test::samples::sweep({"ranks=2"}, {1, 1, 0.5})).best(), nullptr);
}

TEST(Findings, NothingIsBestWhereTheControlMoved) {
  EXPECT_EQ(find_all(test::samples::unreliable()).best(), nullptr);
}

const config::Cost cost{2.5, "EUR", 1e9};

TEST(CostOfARun, FollowsFromTheMeasuredTokenRate) {
  const store::Result result = test::samples::sweep({"micro_batch_size=2", "precision=bf16"}, {1, 1, 0.8, 1.1});
  const Summary summary = summarise(result);
  const auto e = estimate_cost(result, summary, cost);
  ASSERT_TRUE(e);
  EXPECT_EQ(e->steps, 12 * 4);
  const double rate = summary.cases[0].tokens_per_second;
  EXPECT_DOUBLE_EQ(e->before.duration_s, 1e9 / rate);
  EXPECT_DOUBLE_EQ(e->before.price, 1e9 / rate / 3600 * 4 * 2.5);
  ASSERT_EQ(e->after.size(), 1u);  // the slower one saves nothing
  const CaseSaving& saving = e->after[0];
  EXPECT_EQ(saving.after.name, "micro_batch_size=2");
  EXPECT_NEAR(saving.after.duration_s / e->before.duration_s, 0.8, 0.001);
  EXPECT_NEAR(saving.gpus_recovered, 4 * (1 / 0.8 - 1), 0.01);
  EXPECT_NEAR(saving.saved_share, 0.2, 0.001);
  EXPECT_NEAR(saving.saved_run, 0.2 * e->before.price, 0.001 * e->before.price);
  EXPECT_NEAR(saving.saved_yearly, 0.2 * 4 * 8766 * 2.5, 100);
  EXPECT_LT(saving.saved_share_low, saving.saved_share);
  EXPECT_GT(saving.saved_share_high, saving.saved_share);
}

TEST(CostOfARun, FewerGpusAtTheSameRateAreASavingToo) {
  store::Result result = test::samples::sweep({"ranks=2"}, {1, 1, 0.95});
  const auto e = estimate_cost(result, summarise(result), cost);
  ASSERT_TRUE(e);
  ASSERT_EQ(e->after.size(), 1u);
  EXPECT_EQ(e->after[0].after.ranks, 2);
  EXPECT_NEAR(e->after[0].saved_share, 1 - 0.95 / 2, 0.001);
}

TEST(CostOfARun, NothingIsSavedThatIsNotProven) {
  const store::Result moved = test::samples::unreliable();
  const auto unreliable = estimate_cost(moved, summarise(moved), cost);
  ASSERT_TRUE(unreliable);
  EXPECT_TRUE(unreliable->after.empty());
  const store::Result empty;
  EXPECT_FALSE(estimate_cost(empty, summarise(empty), cost));
}

TEST(Published, FindsStepsOfTheSameGpuAndPrecision) {
  const config::Model llama = *config::model_preset("llama3-8b");
  const auto said = [&](const std::string& gpu, double tflops, bool predicted = false) {
    return published_steps({llama, gpu, "bf16", 8, tflops, predicted}).text;
  };
  EXPECT_THAT(said("h100-sxm", 503), AllOf(HasSubstr(" TFLOP/s per GPU, median "),
                                           HasSubstr("like this step); yours: "
                                                     "503, "),
                                           HasSubstr("nearest: LLAMA3-8B")));
  EXPECT_THAT(said("h100-sxm", 503, true), HasSubstr("; yours, predicted: 503, "));
  EXPECT_THAT(said("h100-sxm", 5000), HasSubstr("above all of them: check tokens"));
  EXPECT_THAT(said("h100-sxm", 5000, true), HasSubstr("above all of them: nobody is known to reach it"));
  EXPECT_THAT(said("h100-sxm", 50), HasSubstr("median: below"));
  EXPECT_THAT(said("l40s", 37), HasSubstr("nobody in configs/published has this GPU"));
  EXPECT_EQ(said("", 37), "");
  EXPECT_EQ(published_steps({{}, "h100-sxm", "bf16", 8, 37}).text, "");
}

TEST(Published, SaysHowTheNearestStepDiffers) {
  config::Model llama = *config::model_preset("llama3-8b");
  llama.sequence = 5000;
  EXPECT_THAT(published_steps({llama, "h100-sxm", "bf16", 24}).text,
              AllOf(HasSubstr(" (yours: 5000), "), HasSubstr(" (yours: 24) GPUs"), HasSubstr(" times the FLOP")));
}

TEST(Published, ALineIsOfStepsThatAreNear) {
  const config::Model llama = *config::model_preset("llama3-8b");
  EXPECT_THAT(published_line({llama, "h100-sxm", "bf16", 8}), testing::StartsWith("published for h100-sxm in bf16: "));
  EXPECT_EQ(published_line({llama, "l40s", "bf16", 8}), "");
}

TEST(Published, FindsLargeCollectivesOfAsManyNodes) {
  constexpr std::int64_t gib = std::int64_t{1} << 30;
  EXPECT_THAT(published_busbw("b200", 1, "all_reduce", 2 * gib, 335.45e9), HasSubstr("yours is 50 % of it"));
  EXPECT_EQ(published_busbw("b200", 1, "all_reduce", 1000, 335e9), "");
  EXPECT_EQ(published_busbw("l40s", 1, "all_reduce", 2 * gib, 335e9), "");
}

// Cases of one stage each whose profiled steps wait for rank `late` (-1: none); times scatter by 1 %.
store::Result profiled(int ranks, int cases, int late, double by) {
  std::mt19937_64 random(1);
  std::uniform_real_distribution<> scatter(-0.01, 0.01);
  store::Result r;
  r.ranks = ranks;
  for (int c = 0; c < cases; ++c) {
    store::ResultCase subject;
    subject.ranks = subject.layout[program::Axis::data] = ranks;
    r.cases.push_back(subject);
    for (int rank = 0; rank < ranks; ++rank) {
      store::ResultSplit s;
      s.case_index = c;
      s.rank = rank;
      s.step_s = 1;
      s.compute_s = 0.6 + scatter(random);
      s.idle_s = rank == late ? by : 0;
      s.exposed_s = s.step_s - s.compute_s - s.idle_s;
      r.splits.push_back(s);
    }
  }
  for (int rank = 0; rank < ranks; ++rank) {
    r.rank_table.push_back({rank, 0, rank / 8, "node" + std::to_string(rank / 8), "GPU", 8, 1, 1e9});
  }
  return r;
}

TEST(Stragglers, NamesTheRankThatOthersWaitFor) {
  for (const int ranks : {2, 4, 16, 300}) {
    const Stragglers s = find_stragglers(profiled(ranks, 6, 1, 0.09));
    ASSERT_TRUE(s.found()) << ranks;
    EXPECT_EQ(s.ranks[0].rank, 1);
    EXPECT_EQ(s.ranks[0].host, "node0");
    EXPECT_EQ(s.ranks[0].late_cases, 6);
    EXPECT_NEAR(s.ranks[0].late_s, 0.09, 0.02);
    EXPECT_NEAR(s.ranks[0].idle_s, 0.09, 1e-9);
    EXPECT_FALSE(s.ranks.size() > 1 && s.ranks[1].named);
    EXPECT_LE(s.ranks.size(), 16u);
  }
}

TEST(Stragglers, NamesNobodyForScatter) {
  for (const int ranks : {2, 4, 16, 300}) EXPECT_FALSE(find_stragglers(profiled(ranks, 5, -1, 0)).found()) << ranks;
  EXPECT_FALSE(find_stragglers(store::Result()).found());
}

TEST(Stragglers, NamesNobodyForLatenessThatFallsOnAnyRank) {
  std::mt19937_64 random(7);
  int sweeps = 0, named = 0;
  for (const int ranks : {2, 4, 16}) {
    for (const int cases : {1, 2, 3, 4, 8}) {
      for (int i = 0; i < 40; ++i) {
        store::Result r = profiled(ranks, cases, -1, 0);
        for (int c = 0; c < cases; ++c) {
          const auto rank = std::uniform_int_distribution<>(0, ranks - 1)(random);
          store::ResultSplit& s = r.splits[static_cast<std::size_t>(c * ranks + rank)];
          s.idle_s += 0.08;
          s.exposed_s -= 0.08;
        }
        ++sweeps;
        named += find_stragglers(r).found();
      }
    }
  }
  EXPECT_LE(named, sweeps / 20);
}

// One case suffices if the delay is much larger than the scatter of the other ranks.
TEST(Stragglers, OneCaseIsEnoughForALargeDelay) {
  EXPECT_TRUE(find_stragglers(profiled(8, 1, 3, 0.3)).found());
  EXPECT_FALSE(find_stragglers(profiled(2, 1, 1, 0.3)).found());  // with two ranks, either may be the outlier
  EXPECT_FALSE(find_stragglers(profiled(8, 1, 3, 0.06)).found());
}

// A page draws every rank, even if only some are named.
TEST(Stragglers, EveryRankHasItsShare) {
  store::Result r = profiled(4, 3, 2, 0.2);
  const Stragglers s = find_stragglers(r);
  ASSERT_EQ(s.late_share.size(), 4u);
  EXPECT_NEAR(s.late_share[2], 0.2, 0.02);
  EXPECT_NEAR(s.late_share[0], 0, 0.1);
  r.splits.pop_back();  // the last case lacks a rank
  EXPECT_EQ(find_stragglers(r).cases, 2);
}

// ---- what holds the step up -----------------------------------------------------------------------------------------

CaseBreakdown made_of(std::initializer_list<std::pair<Part, double>> parts) {
  CaseBreakdown c;
  c.mean.step_s = 1;
  for (const auto& [part, s] : parts) c.mean.parts.add(part, s);
  c.ranks.push_back(c.mean);
  return c;
}

TEST(Bottleneck, NamesWhatCostsMostAndWhatActsOnIt) {
  store::Result r;
  r.cases.resize(1);
  r.backend = "cuda";
  r.variables = {"overlap_grad_reduce"};
  r.cases[0].settings = {"false"};
  const auto kind_of = [&](std::initializer_list<std::pair<Part, double>> parts) {
    return find_bottleneck(r, made_of(parts), nullptr, {}).kind;
  };
  EXPECT_EQ(kind_of({{Part::matrix_products, 0.6}, {Part::data, 0.2}, {Part::tensor, 0.1}, {Part::idle, 0.1}}),
            BottleneckKind::communication);
  EXPECT_EQ(kind_of({{Part::matrix_products, 0.6}, {Part::data, 0.1}, {Part::idle, 0.3}}), BottleneckKind::host);
  EXPECT_EQ(kind_of({{Part::matrix_products, 0.6}, {Part::bubble, 0.4}}), BottleneckKind::bubble);
  EXPECT_EQ(kind_of({{Part::matrix_products, 0.6}, {Part::waiting, 0.4}}), BottleneckKind::stragglers);
  EXPECT_EQ(kind_of({{Part::matrix_products, 0.6}, {Part::loading, 0.4}}), BottleneckKind::loading);
  EXPECT_EQ(kind_of({{Part::matrix_products, 0.6}, {Part::other_compute, 0.4}}), BottleneckKind::memory);
  EXPECT_EQ(kind_of({{Part::matrix_products, 1}}), BottleneckKind::none);  // without a peak, their speed is unknown

  const Bottleneck b = find_bottleneck(
      r, made_of({{Part::matrix_products, 0.6}, {Part::data, 0.25}, {Part::tensor, 0.05}, {Part::idle, 0.1}}), nullptr,
      {});
  ASSERT_FALSE(b.levers.empty());
  const auto has = [](const Bottleneck& of, const char* name) {
    return std::ranges::find(of.levers, name, &Lever::variable) != of.levers.end();
  };
  EXPECT_TRUE(has(b, "overlap_grad_reduce"));
  const auto may_save = [](const Lever& lever) {
    return config::find_variable(lever.variable)->moves_peak ? (lever.share + lever.lost) / 2 : lever.lost;
  };
  for (std::size_t i = 1; i < b.levers.size(); ++i) EXPECT_GE(may_save(b.levers[i - 1]), may_save(b.levers[i]));
  const auto advised = [&] {
    return has(find_bottleneck(r, made_of({{Part::data, 1}}), nullptr, {}), "overlap_grad_reduce");
  };
  EXPECT_TRUE(advised());
  r.cases[0].settings = {"true"};
  EXPECT_FALSE(advised());
  r.variables.clear();  // measured before the variable existed: its default, true, applies
  r.cases[0].settings.clear();
  EXPECT_FALSE(advised());
  EXPECT_THAT(b.evidence, HasSubstr("30.0 %"));
  EXPECT_THAT(b.evidence, HasSubstr("data communication 25.0 %"));
}

TEST(Bottleneck, LeversAreVariablesThatActOnThePartAndThatTheBackendHonours) {
  int named = 0;
  for (const char* backend : {"cpu", "cuda"}) {
    store::Result r = test::samples::random_timeline(1, 1, 2);
    r.backend = backend;
    for (const Part part : all_parts) {
      for (const Lever& lever : find_bottleneck(r, made_of({{part, 1}}), nullptr, {}).levers) {
        const config::Variable* v = config::find_variable(lever.variable);
        ASSERT_NE(v, nullptr) << lever.variable;
        EXPECT_TRUE(v->honoured_on(std::string_view(backend), backend)) << lever.variable << backend;
        EXPECT_NE(std::ranges::find(v->acts_on, part), v->acts_on.end()) << lever.variable << key_of(part);
        ++named;
      }
    }
  }
  EXPECT_GT(named, 10);
}

TEST(Bottleneck, EveryPartIsHeldAgainstItsRoof) {
  store::Result r = test::samples::random_timeline(1, 1, 2);
  r.backend = "cuda";
  Waterfall roofs;
  roofs.mfu = 0.5;
  const auto at_roof = [&](Part part, double roof_s) {
    WaterfallBar& bar = roofs.bars.emplace_back();
    bar.part = part;
    bar.roof_s = roof_s;
  };
  at_roof(Part::matrix_products, 0.25);
  at_roof(Part::other_compute, 0.4);
  at_roof(Part::data, 0.3);
  // Most of the step runs at the bandwidth of memory or links, and could not be shorter.
  const CaseBreakdown c = made_of({{Part::matrix_products, 0.3}, {Part::other_compute, 0.4}, {Part::data, 0.3}});
  const Bottleneck found = find_bottleneck(r, c, &roofs, {});
  EXPECT_EQ(found.kind, BottleneckKind::compute);
  EXPECT_NEAR(found.share, 0.05, 1e-12);
  // A roof includes hidden time: 0.2 s of 0.5 s of messages are hidden, and the links need 0.3 s.
  CaseBreakdown hidden = c;
  hidden.mean.overlapped = {{Part::data, 0.2}};
  EXPECT_NEAR(find_bottleneck(r, hidden, &roofs, {}).share, 0.2, 1e-12);
  EXPECT_EQ(find_bottleneck(r, hidden, &roofs, {}).kind, BottleneckKind::communication);
}

}  // namespace
}  // namespace harness::analysis
