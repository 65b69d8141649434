#include "workloads/gpt/gpt.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>

#include "config/experiment.h"
#include "gpt_jobs.h"
#include "program/program.h"

namespace harness::workloads {
namespace {

using ::testing::HasSubstr;

// Published FLOP of these models: 8.470 GFLOP per token by Megatron-LM's formula of 2025, 2.524 TFLOP by Llama's.
TEST(Gpt, FlopAreThosePublished) {
  const Job small = job({"gpt3-1.3b", 24, 2048, 16, 50304, 2048}, 1, 1, 1, 1);
  EXPECT_NEAR(program::total_flop(build(small)).model / 2048 / 1e9, 8.470, 5e-4);
  const Job large = job(*config::model_preset("llama3-405b"), 8, 16, 1, 1);
  EXPECT_NEAR(program::total_flop(build(large)).model / 8192 / 1e12, 2.5240, 5e-5);
  EXPECT_THAT(gpt_workload().flop_formula(large.model), HasSubstr("3 f"));
  EXPECT_THAT(gpt_workload().flop_formula(*config::model_preset("gpt3-1.3b")), HasSubstr("72 B s L h^2"));
}

// Where one rank holds the whole product, its epilogue adds bias and residual, and the norm finds the sum ready.
TEST(Gpt, TheResidualIsAddedByTheProductUnlessASumOverRanksComesBetween) {
  const auto count = [](const program::ProgramSet& set, const auto& has_it) {
    std::int64_t n = 0;
    for (const program::Operation& op : set.roles.front().step) n += has_it(op.action) ? 1 : 0;
    return n;
  };
  const auto product_adds = [](const program::Action& a) {
    const auto* m = std::get_if<program::Matmul>(&a);
    return m != nullptr && m->add.present() && m->bias.present();
  };
  const auto norm_adds = [](const program::Action& a) {
    const auto* n = std::get_if<program::LayerNorm>(&a);
    return n != nullptr && n->residual.present() && n->bias.present();
  };
  const auto stage_adds = [](const program::Action& a) { return std::holds_alternative<program::ResidualAdd>(a); };
  const config::Model m{"m", 4, 64, 4, 256, 32};
  const auto whole = build(job(m, 1, 2, 1, 3)), shared = build(job(m, 2, 2, 1, 3));
  EXPECT_EQ(count(whole, product_adds), 3 * 2 * 2);  // micro-batches, layers of the stage, projection and fc2
  EXPECT_EQ(count(whole, norm_adds) + count(whole, stage_adds), 0);
  EXPECT_EQ(count(shared, product_adds), 0);
  EXPECT_EQ(count(shared, norm_adds), 3 * (2 * 2 - 1));  // what the last product adds to goes to the next stage
  EXPECT_EQ(count(shared, stage_adds), 3);
}

// Each form on its own, and what it is made of.
TEST(Gpt, WhatANormIsFusedWithIsLoweredInItsOrder) {
  const auto set = build(job({"m", 2, 64, 4, 256, 32}, 2, 1, 1, 2));
  const auto without = [&](program::Fused form) {
    const auto low = program::lower(set, program::all_fused & ~static_cast<program::FusedSet>(form));
    std::map<std::string_view, int> more;
    for (const auto& op : low.roles[0].step) ++more[program::name_of(op.action)];
    for (const auto& op : set.roles[0].step) --more[program::name_of(op.action)];
    std::erase_if(more, [](const auto& entry) { return entry.second == 0; });
    EXPECT_TRUE(program::verify(low).empty());
    return more;
  };
  using Counts = std::map<std::string_view, int>;
  // Two micro-batches of two layers with two norms each, and a final norm; the first norm has nothing to add.
  EXPECT_EQ(without(program::Fused::norm_residual), (Counts{{"residual_add", 2 * 4}}));
  EXPECT_EQ(without(program::Fused::norm_bias_gradient), (Counts{{"column_sum", 2 * 4}}));
  // The final norm's gradient has no residual; the first norm's has no bias.
  EXPECT_EQ(without(program::Fused::norm_dresidual), (Counts{{"residual_add", 2 * 4}, {"column_sum", 2 * 3}}));
}

// Two messages of one size between the same stages: which is which shows in the layer at the border.
TEST(Gpt, WhoseChunksReceiveEachOthersInputsAreFound) {
  Job j = job({"m", 9, 64, 8, 256, 16}, 1, 2, 1, 2);
  j.settings.pipeline_schedule = config::PipelineSchedule::interleaved;
  auto set = build(j);
  std::vector<program::Operation*> received;
  for (program::Operation& op : set.roles[1].step) {
    if (std::holds_alternative<program::Receive>(op.action) && op.label.phase == program::Phase::forward)
      received.push_back(&op);
  }
  ASSERT_EQ(received.size(), 4u);
  EXPECT_NE(received[0]->label.layer, received[2]->label.layer);
  std::swap(received[1]->label, received[2]->label);
  EXPECT_NE(texts(program::verify(set)), "");
}

}  // namespace
}  // namespace harness::workloads
