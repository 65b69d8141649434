#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>

#include "plan/plan.h"
#include "support/errors.h"
#include "support/paths.h"

namespace harness::plan {
namespace {

using ::testing::HasSubstr;

// GPT-3 1.3B, 16 sequences of 2048 tokens at once, bf16, on one H200.
struct OneH200 {
  explicit OneH200(const std::string& override_text = "measure.seed=1")
      : experiment(config::load_experiment(test::source_dir() + "/configs/h200.yaml",
                                           {"global_batch_size=16", override_text})),
        plan(prepare(experiment, 1, {"baseline"})) {}
  Budget budget() const {
    return plan::budget(plan.experiment.model, config::BackendKind::cuda, plan.baseline(), *plan.experiment.hardware);
  }
  config::Experiment experiment;
  Plan plan;
};

template <class Value>
std::map<std::string, double> by_kind(const Budget& budget, Value BudgetLine::*value) {
  std::map<std::string, double> sums;
  for (const BudgetLine& line : budget.lines) sums[line.kind] += line.*value;
  return sums;
}

// By hand, with T = 32768 tokens, h = 2048, V = 50304 and 24 layers; A = 2 T h bytes is one activation in bf16.
TEST(Budget, IsTheOneComputedByHand) {
  const Budget b = OneH200().budget();
  const double tokens = 32768, h = 2048, vocab = 50304, layers = 24;
  const double activation = 2 * tokens * h;
  auto flop = by_kind(b, &BudgetLine::flop);
  EXPECT_DOUBLE_EQ(flop["matmul"], 6 * tokens * h * (layers * 12 * h + vocab));  // 257.7 TFLOP
  EXPECT_DOUBLE_EQ(flop["attention"], layers * 2 * tokens * 2048 * h);           // 6.6 TFLOP, causal
  EXPECT_DOUBLE_EQ(flop["attention_backward"], 2 * flop["attention"]);
  EXPECT_DOUBLE_EQ(b.model_flop, b.rates.flops * b.mfu(1));
  auto bytes = by_kind(b, &BudgetLine::bytes);
  // One rank holds the whole product, whose epilogue adds the residual: the norm reads their sum and writes one tensor.
  EXPECT_NEAR(bytes["layer_norm"] / (activation * 2 * 49), 1, 0.01);
  EXPECT_NEAR(bytes["layer_norm_backward"] / (activation * 4 * 48 + activation * 3), 1, 0.01);
  EXPECT_NEAR(bytes["cross_entropy"] / (2 * 2 * tokens * vocab), 1, 0.01);        // logits read and written
  EXPECT_NEAR(bytes["attention"] / (layers * 4 * activation), 1, 0.01);           // q, k, v, out
  EXPECT_NEAR(bytes["attention_backward"] / (layers * 8 * activation), 1, 0.01);  // and their gradients
  const double parameters = layers * 12 * h * h + (vocab + 2048) * h;
  EXPECT_NEAR(bytes["adamw"] / (30 * parameters), 1, 0.01);  // reads w, m, v, g in fp32, writes w, m, v and bf16
}

TEST(Budget, ItsMfuIsAnUpperLimit) {
  const Budget b = OneH200().budget();
  EXPECT_NEAR(b.mfu(b.least_s), 277.5e12 / b.least_s / 989.4e12, 1e-3);
  double sum = 0;
  for (const auto& [kind, seconds] : by_kind(b, &BudgetLine::least_s)) sum += seconds;
  EXPECT_DOUBLE_EQ(sum, b.least_s);
}

// What runs beside the backward pass is listed as before; of the sum only the last buckets' share is left, that of the
// embedding above all.
TEST(Budget, WhatRunsBesideTheBackwardPassIsNotInTheSum) {
  const Budget after = OneH200().budget(), beside = OneH200("overlap_optimizer=true").budget();
  const double update = by_kind(after, &BudgetLine::least_s)["adamw"];
  EXPECT_NEAR(by_kind(beside, &BudgetLine::least_s)["adamw"], update, 1e-6 * update);
  const double saved = after.least_s - beside.least_s;
  EXPECT_LT(saved, update);
  EXPECT_GT(saved, update / 2);
}

// Done for the second time, in the backward pass: the same FLOP as the first, of which MFU knows nothing.
TEST(Budget, ListsWhatIsRecomputedApart) {
  const Budget once = OneH200().budget(), again = OneH200("recompute=full").budget();
  const auto flop = [](const Budget& b, bool recomputed) {
    double sum = 0;
    for (const BudgetLine& line : b.lines) sum += line.recomputed == recomputed ? line.flop : 0;
    return sum;
  };
  EXPECT_EQ(flop(once, true), 0);
  EXPECT_DOUBLE_EQ(flop(again, false), flop(once, false));
  EXPECT_DOUBLE_EQ(again.model_flop, once.model_flop);
  double of_layers = 0;  // of the forward pass, but the head
  for (const BudgetLine& line : once.lines) {
    if (line.phase == program::Phase::forward && line.what != "head") of_layers += line.flop;
  }
  EXPECT_DOUBLE_EQ(flop(again, true), of_layers);
}

TEST(Budget, ShowsTheStageThatTakesLongest) {
  const config::Experiment e = config::load_experiment(
      test::source_dir() + "/configs/h200.yaml", {"layout={tensor_parallel: 1, pipeline_parallel: 4}", "ranks=4"});
  const Plan plan = prepare(e, 4, {"baseline"});
  const Budget b = budget(e.model, config::BackendKind::cuda, plan.baseline(), *e.hardware);
  EXPECT_EQ(b.roles, 4);
  EXPECT_EQ(b.role, 3);  // it has the head
}

TEST(Budget, RefusesWhatItCannotKnow) {
  OneH200 job;
  job.plan.experiment.hardware->memory_bytes_per_s = 0;
  EXPECT_THAT(test::error_of([&] { job.budget(); }), HasSubstr("states no memory_bandwidth"));
  job.plan.experiment.hardware->peaks_flops.erase(config::Precision::bf16);
  EXPECT_THAT(test::error_of([&] { job.budget(); }), HasSubstr("states no peak"));
  const config::Experiment e = config::load_experiment(test::source_dir() + "/configs/collectives.yaml", {});
  const config::Hardware hardware = *OneH200().plan.experiment.hardware;
  EXPECT_THAT(test::error_of([&] {
                budget(e.model, config::BackendKind::cuda, prepare(e, 4, {"baseline"}).baseline(), hardware);
              }),
              HasSubstr("computes nothing"));
}

}  // namespace
}  // namespace harness::plan
