#include "plan/budget.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>

#include "plan/prepare.h"
#include "support/errors.h"
#include "support/paths.h"

namespace harness::plan {
namespace {

using ::testing::HasSubstr;

// GPT-3 1.3B, 16 sequences of 2048 tokens at once, bf16, on one H200.
struct OneH200 {
  config::Experiment experiment =
      config::load_experiment(test::source_dir() + "/configs/h200.yaml", {"global_batch_size=16"});
  Plan plan = prepare(experiment, 1, {"baseline"});

  Budget budget(const Efficiencies& efficiencies = {}) const {
    return plan::budget(plan.experiment.model, config::BackendKind::cuda, plan.baseline(), *plan.experiment.hardware,
                        efficiencies);
  }
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

// What a hand-made budget of this step expects at 700 TFLOP/s in products, 530 and 430 TFLOP/s in attention (the
// backward pass does 5 products and is counted as 4) and 3.4 TB/s elsewhere.
TEST(Budget, FollowsFromStatedEfficiencies) {
  const OneH200 job;
  const double peak = 989.4, memory = 0.72;
  const Budget b = job.budget(
      {.products = 700 / peak, .attention = 530 / peak, .attention_backward = 0.8 * 430 / peak, .memory = memory});
  auto expected = by_kind(b, &BudgetLine::expected_s);
  EXPECT_NEAR(expected["matmul"], 0.3681, 0.0037);
  EXPECT_NEAR(expected["attention"], 0.0125, 0.0002);
  EXPECT_NEAR(expected["attention_backward"], 0.0384, 0.0004);
  EXPECT_NEAR(expected["adamw"], 39.5e9 / 4.8e12 / memory, 2e-4);
  EXPECT_NEAR(b.mfu(b.expected_s), 277.5e12 / b.expected_s / 989.4e12, 1e-3);
  EXPECT_GT(b.mfu(b.least_s), b.mfu(b.expected_s));
  double sum = 0;
  for (const auto& [kind, seconds] : expected) sum += seconds;
  EXPECT_DOUBLE_EQ(sum, b.expected_s);
}

// What runs beside the backward pass is listed as before; of the sum only the last buckets' share is left, that of the
// embedding above all.
TEST(Budget, WhatRunsBesideTheBackwardPassIsNotInTheSum) {
  const Budget after = OneH200().budget();
  OneH200 job;
  job.experiment = config::load_experiment(test::source_dir() + "/configs/h200.yaml",
                                           {"global_batch_size=16", "overlap_optimizer=true"});
  job.plan = prepare(job.experiment, 1, {"baseline"});
  const Budget beside = job.budget();
  const double update = by_kind(after, &BudgetLine::expected_s)["adamw"];
  EXPECT_NEAR(by_kind(beside, &BudgetLine::expected_s)["adamw"], update, 1e-6 * update);
  const double saved = after.expected_s - beside.expected_s;
  EXPECT_LT(saved, update);
  EXPECT_GT(saved, update / 2);
  EXPECT_NEAR(saved, after.least_s - beside.least_s, 1e-9);
}

// Done for the second time, in the backward pass: the same FLOP as the first, of which MFU knows nothing.
TEST(Budget, ListsWhatIsRecomputedApart) {
  const Budget once = OneH200().budget();
  OneH200 job;
  job.experiment =
      config::load_experiment(test::source_dir() + "/configs/h200.yaml", {"global_batch_size=16", "recompute=full"});
  job.plan = prepare(job.experiment, 1, {"baseline"});
  const Budget again = job.budget();
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
  const Budget b = budget(e.model, config::BackendKind::cuda, plan.baseline(), *e.hardware, {});
  EXPECT_EQ(b.roles, 4);
  EXPECT_EQ(b.role, 3);  // it has the head
}

TEST(Budget, RefusesWhatItCannotKnow) {
  OneH200 job;
  job.plan.experiment.hardware->memory_bytes_per_s = 0;
  EXPECT_THAT(test::error_of([&] { job.budget(); }), HasSubstr("states no memory_bandwidth"));
  job.plan.experiment.hardware->peaks_flops.erase(config::Precision::bf16);
  EXPECT_THAT(test::error_of([&] { job.budget(); }), HasSubstr("states no peak"));
}

TEST(Budget, OfACollectiveIsNone) {
  const config::Experiment e = config::load_experiment(test::source_dir() + "/configs/collectives.yaml", {});
  const Plan plan = prepare(e, 4, {"baseline"});
  const config::Hardware hardware = *OneH200().plan.experiment.hardware;
  EXPECT_THAT(test::error_of([&] { budget(e.model, config::BackendKind::cuda, plan.baseline(), hardware, {}); }),
              HasSubstr("computes nothing"));
}

TEST(Efficiencies, AreReadByName) {
  const std::vector<std::string> items{"products=70%", "memory=0.8"};
  const Efficiencies e = parse_efficiencies(items);
  EXPECT_DOUBLE_EQ(e.products, 0.7);
  EXPECT_DOUBLE_EQ(e.memory, 0.8);
  EXPECT_DOUBLE_EQ(e.attention, 1);
  for (const std::string wrong : {"product=70%", "products", "products=0", "products=120%", "=1"}) {
    EXPECT_THAT(test::error_of([&] { parse_efficiencies(std::vector<std::string>{wrong}); }), HasSubstr(wrong))
        << wrong;
  }
}

}  // namespace
}  // namespace harness::plan
