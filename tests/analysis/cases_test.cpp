#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "analysis/cases.h"
#include "analysis/findings.h"
#include "summary_fixture.h"

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
    EXPECT_TRUE(findings.summary.proven_changes().empty());
    EXPECT_THAT(row.trains_differently, HasSubstr(sharded ? "gradients of weights" : "of norms, biases and positions"));
  }
}

TEST_F(Training, RoundingIsNoDeparture) {
  const auto apart = [&](const std::string& precision, const std::string& of_case, double factor) {
    store::Result result = with(precision);
    result.cases[2].settings[0] = of_case;
    result.gradients[1].sharded_squares *= factor;
    return !why_trains_differently(result, 2).empty();
  };
  EXPECT_FALSE(apart("fp32", "fp32", 1.00009));
  EXPECT_TRUE(apart("fp32", "fp32", 1.00011));
  EXPECT_FALSE(apart("bf16", "bf16", 1.029));
  EXPECT_TRUE(apart("bf16", "bf16", 1.031));
  EXPECT_FALSE(apart("fp32", "bf16", 1.029)) << "the bound of the coarser one";
  EXPECT_TRUE(apart("fp32", "bf16", 1.031));
  for (const char* of_baseline : {"bf16", "fp8"}) {
    EXPECT_FALSE(apart(of_baseline, "fp8", 1.149)) << of_baseline;
    EXPECT_TRUE(apart(of_baseline, "fp8", 1.151)) << of_baseline;
  }
}

// Only the loss shows weights that are a step old.
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
  const auto changed = [&](auto change) {
    store::Result result = with("fp32");
    result.gradients[1].sharded_squares *= 2;
    change(result.cases[2]);
    return result;
  };
  for (const store::Result& result : {changed([](store::ResultCase& c) { c.settings[1] = "16"; }),
                                      changed([](store::ResultCase& c) { c.tokens_per_step = 2000; })}) {
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

// A job whose ranks stand on these nodes, and `cases` of this layout.
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

}  // namespace

}  // namespace harness::analysis
