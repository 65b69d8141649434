#include "analysis/findings.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <limits>
#include <random>

#include "base/random.h"
#include "config/registry.h"
#include "random_timeline.h"
#include "support/sample_results.h"

namespace harness::analysis {
namespace {

using ::testing::HasSubstr;

// Cases of one stage each whose profiled steps wait for `late` (none: -1); times scatter by 1 %.
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

// Without many cases: a delay that dwarfs what the others differ by.
TEST(Stragglers, OneCaseIsEnoughForALargeDelay) {
  EXPECT_TRUE(find_stragglers(profiled(8, 1, 3, 0.3)).found());
  EXPECT_FALSE(find_stragglers(profiled(2, 1, 1, 0.3)).found());  // of two, either may be the odd one
  EXPECT_FALSE(find_stragglers(profiled(8, 1, 3, 0.06)).found());
}

store::Result timed(std::int32_t ranks, int blocks, int steps) {
  store::Result r;
  r.ranks = ranks;
  r.warmup_steps = 1;
  r.steps = steps;
  r.cases.resize(1);
  r.cases[0].ranks = r.cases[0].layout[program::Axis::data] = ranks;
  for (int b = 0; b < blocks; ++b) {
    store::ResultBlock block;
    block.status = store::BlockStatus::ok;
    r.blocks.push_back(block);
    r.rank_seconds.emplace_back(static_cast<std::size_t>(ranks) * static_cast<std::size_t>(steps + 1), 1.0f);
  }
  return r;
}

TEST(Stragglers, TimedStepsSayWhoWasLast) {
  constexpr std::size_t ranks = 96;  // more than the heat map has rows
  store::Result r = timed(ranks, 2, 4);
  for (auto& block : r.rank_seconds) {
    for (std::size_t step = 0; step < 5; ++step) {
      block[step * ranks + 2] = std::numeric_limits<float>::quiet_NaN();  // idle
      block[step * ranks + 3] = 1.5f;
    }
    block[2] = 99;  // warm-up does not count
  }
  const Stragglers s = find_stragglers(r);
  ASSERT_TRUE(s.found());
  EXPECT_EQ(s.ranks[0].rank, 3);
  EXPECT_EQ(s.ranks[0].last_steps, 8);
  EXPECT_NEAR(s.ranks[0].last_excess_s, 0.5, 1e-6);
  EXPECT_NEAR(s.ranks[0].last_excess_share, 0.5, 1e-6);
  ASSERT_TRUE(s.heat);
  EXPECT_EQ(s.heat->ranks_per_row, 2);
  EXPECT_EQ(s.heat->first_rank.size(), 48u);
  EXPECT_EQ(s.heat->first_rank[1], 2);
  EXPECT_EQ(s.heat->seconds[0], (std::vector<float>{1, 1, 1, 1}));
  EXPECT_EQ(s.heat->seconds[1], (std::vector<float>{1.5f, 1.5f, 1.5f, 1.5f}));
}

TEST(Stragglers, ManyRanksTakeLinearTime) {
  const store::Result r = timed(16384, 4, 10);
  const std::clock_t began = std::clock();  // of this process, however busy the machine is
  EXPECT_EQ(find_stragglers(r).steps, 40);
  constexpr double most_s = 10;  // hundreds of times what it takes: only what is not linear takes longer
  EXPECT_LT(static_cast<double>(std::clock() - began) / CLOCKS_PER_SEC, most_s);
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
  EXPECT_EQ(kind_of({{Part::matrix_products, 1}}), BottleneckKind::none);  // no peak: nobody knows if it is slow

  const Bottleneck b = find_bottleneck(
      r, made_of({{Part::matrix_products, 0.6}, {Part::data, 0.25}, {Part::tensor, 0.05}, {Part::idle, 0.1}}), nullptr,
      {});
  ASSERT_FALSE(b.levers.empty());
  const auto has = [](const Bottleneck& of, const char* name) {
    return std::ranges::find(of.levers, name, &Lever::variable) != of.levers.end();
  };
  EXPECT_TRUE(has(b, "overlap_grad_reduce"));
  const auto by = [](const Lever& lever) { return lever.most.value_or(lever.lost); };
  for (std::size_t i = 1; i < b.levers.size(); ++i) EXPECT_GE(by(b.levers[i - 1]), by(b.levers[i]));
  const auto advised = [&] {
    return has(find_bottleneck(r, made_of({{Part::data, 1}}), nullptr, {}), "overlap_grad_reduce");
  };
  EXPECT_TRUE(advised());
  r.cases[0].settings = {"true"};
  EXPECT_FALSE(advised());
  r.variables.clear();  // measured before there was such a variable: with its default, true
  r.cases[0].settings.clear();
  EXPECT_FALSE(advised());
  EXPECT_THAT(b.evidence, HasSubstr("30.0 %"));
  EXPECT_THAT(b.evidence, HasSubstr("data communication 25.0 %"));
}

// What a case can save at most is no bound where it is counted from a peak that the case itself exceeds.
TEST(Bottleneck, PromisesNoBoundFromAPeakThatIsExceeded) {
  store::Result r = test::samples::random_timeline(1, 1, 2);
  r.backend = "cuda";
  Waterfall peak;
  WaterfallBar& bar = peak.bars.emplace_back();
  bar.part = Part::matrix_products;
  bar.seconds = 0.6;
  bar.roof_s = 0.3;
  int bounded = 0, unbounded = 0;
  for (const double mfu : {0.5, 1.2}) {
    peak.mfu = mfu;
    const auto found = find_bottleneck(r, made_of({{Part::matrix_products, 0.6}, {Part::data, 0.4}}), &peak, {});
    for (const Lever& lever : found.levers) {
      const auto& parts = config::find_variable(lever.variable)->acts_on;
      if (std::ranges::find(parts, Part::matrix_products) == parts.end()) {
        EXPECT_TRUE(lever.most) << lever.variable;
      } else {
        (mfu > 1 ? unbounded : bounded) += 1;
        EXPECT_TRUE(mfu < 1 || !lever.most) << lever.variable;
      }
    }
  }
  EXPECT_GT(bounded, 0);
  EXPECT_EQ(unbounded, bounded);
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

// Of any step, whatever is known of its roofs: a variable saves no more than the parts take on which it acts, and what
// runs at its roof is no loss.
TEST(Bottleneck, NothingSavesMoreThanItActsOn) {
  std::mt19937 random(1);
  const auto uniform = [&] { return std::uniform_real_distribution<>(0, 1)(random); };
  store::Result r = test::samples::random_timeline(1, 1, 2);
  r.backend = "cuda";
  int levers = 0;
  for (int trial = 0; trial < 300; ++trial) {
    CaseBreakdown c;
    Waterfall roofs;
    roofs.mfu = uniform();
    for (const Part part : all_parts) {
      if (uniform() < 0.3) continue;
      const double seconds = uniform();
      c.mean.parts.add(part, seconds);
      c.mean.step_s += seconds;
      if (uniform() < 0.3) c.mean.overlapped.emplace_back(part, uniform());
      WaterfallBar& bar = roofs.bars.emplace_back();
      bar.part = part;
      bar.seconds = seconds;
      if (uniform() < 0.6) bar.roof_s = 2 * uniform() * seconds;
    }
    c.ranks.push_back(c.mean);
    const Bottleneck found = find_bottleneck(r, c, trial % 3 == 0 ? nullptr : &roofs, {});
    EXPECT_GE(found.share, 0);
    EXPECT_LE(found.share, 1 + 1e-12);
    for (const Lever& lever : found.levers) {
      ++levers;
      EXPECT_LE(lever.share, 1 + 1e-12) << lever.variable;
      EXPECT_GE(lever.lost, 0) << lever.variable;
      EXPECT_LE(lever.lost, lever.share + 1e-12) << lever.variable;
      if (lever.most) {
        EXPECT_LE(*lever.most, lever.share + 1e-12) << lever.variable;
      }
    }
  }
  EXPECT_GT(levers, 1000);
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
  // Most of the step is spent at memory bandwidth and at that of the links, and could not be shorter.
  const CaseBreakdown c = made_of({{Part::matrix_products, 0.3}, {Part::other_compute, 0.4}, {Part::data, 0.3}});
  const Bottleneck found = find_bottleneck(r, c, &roofs, {});
  EXPECT_EQ(found.kind, BottleneckKind::compute);
  EXPECT_NEAR(found.share, 0.05, 1e-12);
  // A roof counts what is hidden as well: of 0.5 s of messages 0.2 s are hidden, and the links need 0.3 s.
  CaseBreakdown hidden = c;
  hidden.mean.overlapped = {{Part::data, 0.2}};
  EXPECT_NEAR(find_bottleneck(r, hidden, &roofs, {}).share, 0.2, 1e-12);
  EXPECT_EQ(find_bottleneck(r, hidden, &roofs, {}).kind, BottleneckKind::communication);
}

// Longer sweeps of the same scatter see a wider range, which is no news.
TEST(Rules, TheSpreadOfBlocksDoesNotGrowWithTheRounds) {
  int quiet = 0, loud = 0;
  for (const int rounds : {6, 12, 40, 400}) {
    for (std::uint64_t seed = 0; seed < 20; ++seed) {
      const auto fires = [&](double deviation) {
        store::Result r = test::samples::sweep({"a=1"}, {1, 1, 1}, rounds);
        for (std::size_t i = 0; i < r.blocks.size(); ++i) {
          const double block = 1 + deviation * philox_normal(seed, i);
          for (float& s : r.step_seconds[i]) s = static_cast<float>(block);
        }
        const auto rules = fired_rules(r, summarise(r), made_of({{Part::matrix_products, 1}}));
        return std::ranges::any_of(rules, [](const std::string& rule) { return rule.starts_with("Blocks of this"); });
      };
      quiet += fires(0.02) ? 1 : 0;
      loud += fires(0.10) ? 1 : 0;
    }
  }
  EXPECT_EQ(quiet, 0);
  EXPECT_GE(loud, 70);
}

TEST(Rules, FireWithTheirNumbers) {
  store::Result r = test::samples::random_timeline(1, 1, 2);
  r.gpu.resize(1);
  const auto fired = [&](const CaseBreakdown& c, double utilisation = 0) {
    Summary s = summarise(r);
    s.cases[0].gpu_utilisation = utilisation;
    s.cases[0].mfu = 0.1;
    std::string all;
    for (const auto& rule : fired_rules(r, s, c)) all += rule + "\n";
    return all;
  };
  EXPECT_EQ(fired(made_of({{Part::matrix_products, 0.9}, {Part::data, 0.1}})), "");
  EXPECT_THAT(fired(made_of({{Part::matrix_products, 0.4}, {Part::data, 0.6}})), HasSubstr("60.0 % of the step"));
  EXPECT_THAT(fired(made_of({{Part::matrix_products, 0.75}, {Part::data, 0.25}})),
              HasSubstr("0.33 times as long as computation"));
  CaseBreakdown idle = made_of({{Part::matrix_products, 0.9}, {Part::idle, 0.1}});
  idle.mean.idle = {{{IdlePlace::Kind::between_phases, "forward", "backward"}, 0.07},
                    {{IdlePlace::Kind::within_phase, "forward", "forward"}, 0.03}};
  EXPECT_THAT(fired(idle), HasSubstr("7.0 % of the step between forward and backward"));
  EXPECT_THAT(fired(made_of({{Part::matrix_products, 1}}), 0.99), HasSubstr("GPU utilisation of 99.0 %"));
}

}  // namespace
}  // namespace harness::analysis
