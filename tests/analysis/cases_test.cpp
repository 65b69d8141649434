// Cases that train differently from the baseline, and the blocks of a sweep that will still run. A case can be dropped
// or refused at any moment, which leaves its blocks pending.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <random>

#include "analysis/cases.h"
#include "analysis/estimator.h"
#include "analysis/findings.h"
#include "analysis/summary.h"
#include "summary_fixture.h"
#include "support/sample_results.h"

namespace harness::analysis {
namespace {

using ::testing::HasSubstr;

class Training : public SummaryTest {
 protected:
  // Case 2 is much faster than the baseline.
  store::Result with(const std::string& precision) {
    store::Result result = ordinary();
    result.variables = {"precision", "global_batch_size"};
    for (auto& row : result.cases) row.settings = {precision, "8"};
    for (const std::int32_t i : {0, 2, 3}) result.gradients.push_back({i, 4, 2});
    return result;
  }
  static void lose(store::Result& result, std::size_t step, float loss) {
    for (std::size_t i = 0; i < result.blocks.size(); ++i) {
      if (result.blocks[i].case_index == 2) result.losses[i][step] = loss;
    }
  }
};

TEST_F(Training, WhatTrainsAlikeIsAnImprovement) {
  const Findings findings = find_all(with("fp32"));
  EXPECT_EQ(findings.summary.cases[2].trains_differently, "");
  EXPECT_EQ(findings.best(), &findings.summary.cases[2]);
}

TEST_F(Training, ACaseWithOtherGradientsHasNoVerdictAndWinsNothing) {
  for (const bool sharded : {true, false}) {
    store::Result result = with("fp32");
    (sharded ? result.gradients[1].sharded_squares : result.gradients[1].replicated_squares) *= 1.0002;
    const Findings findings = find_all(result);
    const CaseSummary& row = findings.summary.cases[2];
    EXPECT_EQ(row.judgement.verdict, Verdict::none);
    EXPECT_STREQ(name_of(row.judgement), "trains differently");
    EXPECT_EQ(row.effect->verdict, Verdict::none);
    EXPECT_EQ(findings.best(), nullptr);
    EXPECT_TRUE(findings.summary.improvements().empty());
    EXPECT_THAT(row.trains_differently, HasSubstr(sharded ? "gradients of weights" : "of norms, biases and positions"));
  }
}

// The coarser precision of the two counts, and that of the sums of gradients.
TEST_F(Training, RoundingIsNoDeparture) {
  struct Row {
    const char *of_baseline, *of_case, *of_sums;
    double most;  // the largest ratio of the squares that rounding explains
  };
  for (const Row& row :
       {Row{"fp32", "fp32", "fp32", 1.0001}, Row{"bf16", "bf16", "fp32", 1.03}, Row{"fp32", "bf16", "fp32", 1.03},
        Row{"bf16", "fp8", "fp32", 1.15}, Row{"fp8", "fp8", "fp32", 1.15}, Row{"fp32", "fp32", "bf16", 1.03}}) {
    store::Result result = with(row.of_baseline);
    result.cases[2].settings[0] = row.of_case;
    result.variables.emplace_back("grad_reduce_precision");
    for (store::ResultCase& planned : result.cases) planned.settings.emplace_back(row.of_sums);
    for (const double beyond : {-1e-5, 1e-5}) {
      result.gradients[1].sharded_squares = (row.most + beyond) * result.gradients[0].sharded_squares;
      EXPECT_EQ(why_trains_differently(result, 2).empty(), beyond < 0) << row.of_baseline << row.of_case << row.of_sums;
    }
  }
}

// Weights that are one step old show only in the loss.
TEST_F(Training, TheThirdLossAndTheLastAreCompared) {
  const auto apart = [&](std::size_t step, float loss) {
    store::Result result = with("fp32");
    lose(result, step, loss);
    return why_trains_differently(result, 2);
  };
  EXPECT_EQ(apart(2, 3.0002F), "");
  EXPECT_THAT(apart(2, 3.0004F), HasSubstr("the loss of step 3 is 3.0004, the baseline's 3"));
  EXPECT_EQ(apart(3, 2.001F), "");
  EXPECT_THAT(apart(3, 2.003F), HasSubstr("the last loss"));
  EXPECT_EQ(apart(1, 40), "");
}

TEST_F(Training, AnotherTrainingIsNotCompared) {
  for (const bool by_tokens : {false, true}) {
    store::Result result = with("fp32");
    result.gradients[1].sharded_squares *= 2;
    if (by_tokens) {
      result.cases[2].tokens_per_step = 2000;
    } else {
      result.cases[2].settings[1] = "16";
    }
    const Findings findings = find_all(result);
    const CaseSummary& row = findings.summary.cases[2];
    EXPECT_TRUE(row.another_training);
    EXPECT_EQ(row.trains_differently, "");
    EXPECT_TRUE(is_proven(row)) << "faster per token";
    EXPECT_FALSE(is_improvement(row));
    EXPECT_EQ(findings.best(), nullptr);
  }
}

TEST_F(Training, WithoutGradientsTheLossesDecide) {
  store::Result result = with("fp32");
  result.gradients.clear();
  EXPECT_EQ(why_trains_differently(result, 2), "");
  lose(result, 3, 2.5F);
  EXPECT_NE(why_trains_differently(result, 2), "");
}

// A job whose ranks are on these nodes, with `cases` cases of this layout.
store::Result placed(const program::Layout& layout, const std::vector<std::int32_t>& node_of, std::size_t cases) {
  store::Result r;
  r.ranks = static_cast<std::int32_t>(node_of.size());
  for (const std::int32_t node : node_of) {
    store::ResultRank& place = r.rank_table.emplace_back();
    place.rank = static_cast<std::int32_t>(r.rank_table.size()) - 1;
    place.node = node;
  }
  r.cases.resize(cases);
  for (store::ResultCase& row : r.cases) {
    row.ranks = r.ranks;
    row.layout = layout;
  }
  return r;
}

TEST(SpansOfACase, NameTheEndsOfAPipelineWhereTheyExchangedAGradient) {
  const program::Layout layout{{program::Axis::data, 2}, {program::Axis::pipeline, 3}};
  store::Result r = placed(layout, {0, 0, 1, 1, 0, 2}, 1);
  for (std::int32_t rank = 0; rank < 6; ++rank) r.roles.push_back({0, rank, rank / 2, layout.coordinates(rank)});
  EXPECT_EQ(spans_of_case(r, 0).text(), "pipeline 3, data 2");
  store::ResultOperations& exchange = r.operations.emplace_back();
  exchange.case_index = 1;
  exchange.group = "embedding";
  EXPECT_EQ(spans_of_case(r, 0).text(), "pipeline 3, data 2") << "it is another case's";
  exchange.case_index = 0;
  EXPECT_EQ(spans_of_case(r, 0).text(), "pipeline 3, data 2, embedding 2");
}

TEST(SpansOfACase, AreByTheNodesThatTheCaseSays) {
  const program::Layout layout{{program::Axis::tensor, 2}, {program::Axis::data, 2}};
  store::Result r = placed(layout, {0, 0, 1, 1}, 3);
  for (std::int32_t rank = 0; rank < 4; ++rank) r.roles.push_back({0, rank, 0, layout.coordinates(rank), rank / 2});
  for (std::int32_t rank = 0; rank < 4; ++rank) r.roles.push_back({1, rank, 0, layout.coordinates(rank), rank % 2});
  for (std::int32_t rank = 0; rank < 4; ++rank) r.roles.push_back({2, rank, 0, layout.coordinates(rank), -1});
  EXPECT_EQ(spans_of_case(r, 0).text(), "tensor 1, data 2");
  EXPECT_EQ(spans_of_case(r, 1).text(), "tensor 2, data 1");
  EXPECT_EQ(spans_of_case(r, 2).text(), "tensor 1, data 2") << "an older file's are those of the job";
}

// A sweep interrupted at a random moment. Every block of the baseline has been tried or is still pending.
store::Result left_at_random(unsigned seed) {
  std::mt19937 random(seed);
  const auto one_of = [&](int n) { return static_cast<int>(random() % static_cast<unsigned>(n)); };
  store::Result result = test::samples::sweep({"a=1", "b=1", "c=1", "d=1"}, {1, 1, 0.8, 1.3, 1, 1.02});
  result.state = one_of(3) == 0 ? store::RunState::complete : store::RunState::running;
  result.looks = one_of(2) == 0 ? "" : "5,8,12";
  const int rounds_measured = one_of(result.rounds + 1), begun = one_of(7);
  constexpr std::array statuses{store::CaseStatus::ok, store::CaseStatus::pending, store::CaseStatus::failed,
                                store::CaseStatus::impossible};
  std::vector<int> ends(result.cases.size(), result.rounds);  // the round in which a case was dropped or settled
  std::vector<char> settled(result.cases.size(), 0);
  for (std::size_t c = 1; c < result.cases.size(); ++c) {
    result.cases[c].status = statuses[static_cast<std::size_t>(one_of(4))];
    if (result.cases[c].status == store::CaseStatus::failed) ends[c] = one_of(result.rounds);
    if (result.cases[c].status == store::CaseStatus::impossible) ends[c] = 0;
    settled[c] = static_cast<char>(result.cases[c].status == store::CaseStatus::ok && one_of(3) == 0);
    if (settled[c] != 0) ends[c] = 5;
  }
  for (store::ResultBlock& block : result.blocks) {
    const auto c = static_cast<std::size_t>(block.case_index);
    const bool reached = block.round < rounds_measured || (block.round == rounds_measured && block.position < begun);
    block.start_unix_s = 100 * block.round + 10 * block.position;
    block.status = reached && block.round < ends[c] ? store::BlockStatus::ok : store::BlockStatus::pending;
    if (block.status == store::BlockStatus::ok && one_of(12) == 0) block.status = store::BlockStatus::failed;
    if (settled[c] != 0 && block.round >= ends[c] && rounds_measured >= 5) block.status = store::BlockStatus::left_out;
  }
  return result;
}

bool is_open(const store::Result& result, const store::ResultBlock& block) {
  const store::CaseStatus status = result.at(block).status;
  return block.status == store::BlockStatus::pending && status != store::CaseStatus::failed &&
         status != store::CaseStatus::impossible;
}

// Returns the sweep without the blocks that will never run.
store::Result without_dead_blocks(const store::Result& result) {
  store::Result out = result;
  out.blocks.clear();
  out.step_seconds.clear();
  out.losses.clear();
  for (std::size_t i = 0; i < result.blocks.size(); ++i) {
    const store::ResultBlock& block = result.blocks[i];
    if (!block.has_run() && !is_open(result, block)) continue;
    out.blocks.push_back(block);
    out.step_seconds.push_back(result.step_seconds[i]);
    out.losses.push_back(result.losses[i]);
  }
  return out;
}

TEST(OpenBlocks, WhatWillNeverRunMightAsWellNotBePlanned) {
  int with_dead = 0;
  for (unsigned seed = 0; seed < 300; ++seed) {
    const store::Result result = left_at_random(seed), alive = without_dead_blocks(result);
    if (alive.blocks.size() < result.blocks.size()) ++with_dead;
    SCOPED_TRACE(seed);
    EXPECT_EQ(rounds_over(result), rounds_over(alive));
    EXPECT_EQ(first_open_round(result), first_open_round(alive));
    const std::vector<Look> looks = looks_of(result), looks_of_alive = looks_of(alive);
    EXPECT_TRUE(std::ranges::equal(looks, looks_of_alive, {}, &Look::rounds, &Look::rounds));
    const HowFar far = how_far(result), far_of_alive = how_far(alive);
    const auto tried = static_cast<std::size_t>(std::ranges::count_if(alive.blocks, &store::ResultBlock::has_run));
    EXPECT_EQ(far.rounds_done, far_of_alive.rounds_done);
    EXPECT_EQ(far.rounds, far_of_alive.rounds);
    EXPECT_EQ(far.blocks_done, tried);
    EXPECT_EQ(far.blocks, alive.blocks.size());
    EXPECT_EQ(far.remaining_s, far_of_alive.remaining_s);
    EXPECT_EQ(far.remaining_s.has_value(), tried > 0 && tried < alive.blocks.size());
    for (const store::ResultBlock& block : result.blocks)
      EXPECT_EQ(will_still_run(result, block), is_open(result, block));
    const Summary summary = summarise(result), summary_of_alive = summarise(alive);
    EXPECT_EQ(summary.partial, summary_of_alive.partial);
    if (result.state == store::RunState::complete) {
      EXPECT_EQ(summary.partial, tried < alive.blocks.size());
    }
    for (std::size_t c = 0; c < summary.cases.size(); ++c) {
      EXPECT_EQ(summary.cases[c].judgement.verdict, summary_of_alive.cases[c].judgement.verdict);
      EXPECT_EQ(summary.cases[c].judgement.reason, summary_of_alive.cases[c].judgement.reason);
      EXPECT_EQ(summary.cases[c].settled_after, summary_of_alive.cases[c].settled_after);
    }
  }
  EXPECT_GT(with_dead, 200);
}

// The remedy "measure more rounds" is not given for cases that failed, cannot run, or were never measured.
TEST(OpenBlocks, OnlyTooFewRoundsAreAnsweredWithMoreRounds) {
  int answered = 0;
  for (unsigned seed = 0; seed < 300; ++seed) {
    const store::Result result = left_at_random(seed);
    const Summary summary = summarise(result);
    SCOPED_TRACE(seed);
    const auto warning = std::ranges::find_if(
        summary.warnings, [](const std::string& text) { return text.starts_with("no verdict on "); });
    const std::string named =
        warning == summary.warnings.end() ? "" : warning->substr(0, warning->find(": a verdict needs"));
    for (const CaseSummary& row : summary.cases) {
      if (store::is_reference(row.role)) continue;
      const bool too_few = row.judgement.reason == Reason::too_few_rounds && row.blocks > 0;
      EXPECT_EQ(named.find(row.name) != std::string::npos, too_few) << row.name << ": " << named;
      if (too_few) ++answered;
    }
  }
  EXPECT_GT(answered, 50);
}

// Two blocks of `steps` timed steps, one twice as slow as the other. A step takes 1 s, every tenth step 1.5 s and the
// last step of a block 3 s, times the block's pace.
store::Result two_blocks(int steps) {
  store::Result result;
  result.warmup_steps = 1;
  result.steps = steps;
  result.cases.resize(1);
  result.cases[0].name = "baseline";
  result.cases[0].status = store::CaseStatus::ok;
  for (const float pace : {1.0F, 2.0F}) {
    store::ResultBlock block;
    block.status = store::BlockStatus::ok;
    block.session = 0;
    result.blocks.push_back(block);
    std::vector<float> seconds{100};  // the warm-up step does not count
    for (int i = 1; i < steps; ++i) seconds.push_back(pace * (i % 10 == 0 ? 1.5F : 1.0F));
    seconds.push_back(3 * pace);
    result.step_seconds.push_back(seconds);
  }
  return result;
}

// 120 steps: 2 of 3, 10 of 1.5, 108 of 1. p95 is the 114th smallest, p99 the 119th.
TEST(Tails, AreOverTheMedianOfTheBlock) {
  const auto tails = tails_of(two_blocks(60), 0);
  ASSERT_TRUE(tails);
  EXPECT_FLOAT_EQ(tails->p95, 1.5);
  EXPECT_FLOAT_EQ(tails->p99, 3);
  EXPECT_FLOAT_EQ(summarise(two_blocks(60)).cases[0].tails->p99, 3);
}

TEST(Tails, AreNoneBelowAHundredSteps) {
  EXPECT_FALSE(tails_of(two_blocks(49), 0));
  EXPECT_TRUE(tails_of(two_blocks(50), 0));
  store::Result failed = two_blocks(60);
  failed.blocks[0].status = store::BlockStatus::failed;
  EXPECT_FALSE(tails_of(failed, 0));
}

}  // namespace
}  // namespace harness::analysis
