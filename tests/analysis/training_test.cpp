#include "analysis/cases.h"

#include <gmock/gmock.h>

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
  EXPECT_EQ(signs_of_training(result, 2).size(), 2u);
  lose(result, 3, 2.5F);
  EXPECT_NE(why_trains_differently(result, 2), "");
}

}  // namespace
}  // namespace harness::analysis
