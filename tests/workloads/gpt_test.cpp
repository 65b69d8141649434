#include "workloads/gpt/gpt.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

#include "gpt_jobs.h"
#include "program/arena.h"
#include "program/count.h"
#include "program/lower.h"
#include "program/verify.h"
#include "workloads/gpt/parameters.h"
#include "workloads/workload.h"

namespace harness::workloads {
namespace {

using ::testing::HasSubstr;

const config::Model model_1b3{"gpt3-1.3b", 24, 2048, 16, 50304, 2048};

// Narayanan et al. 2021, equation 3, without recomputation (72 instead of 96) and with causal attention at half:
// 72 B s L h^2 (1 + s / 12 h + V / 12 L h).
double closed_flop(const config::Model& m, double batch, bool causal) {
  const double l = static_cast<double>(m.layers), h = static_cast<double>(m.hidden),
               s = static_cast<double>(m.sequence), v = static_cast<double>(m.vocab);
  return 72 * batch * s * l * h * h * (1 + s / ((causal ? 12 : 6) * h) + v / (12 * l * h));
}

TEST(Gpt, FlopEqualClosedFormula) {
  for (const auto& [tp, pp, dp, m] : {std::array{1, 1, 1, 1}, std::array{2, 2, 4, 3}, std::array{8, 1, 2, 2},
                                      std::array{1, 8, 1, 8}, std::array{1, 7, 1, 8}}) {
    const Job j = job(model_1b3, tp, pp, dp, m);
    const program::Flop f = program::total_flop(build(j));
    const double batch = static_cast<double>(j.settings.global_batch_size);
    EXPECT_NEAR(f.model / closed_flop(j.model, batch, true), 1, 1e-12);
    EXPECT_NEAR(f.noncausal / closed_flop(j.model, batch, false), 1, 1e-12);
  }
  // 8.470 GFLOP per token: what Megatron-LM's formula of 2025 gives for this model.
  EXPECT_NEAR(program::total_flop(build(job(model_1b3, 1, 1, 1, 1))).model / 2048 / 1e9, 8.470, 5e-4);
}

TEST(Gpt, TensorParallelTrafficEqualsClosedFormula) {
  const std::int64_t m = 3, b = 2;
  Job j = job(model_1b3, 4, 1, 2, m, b);
  j.settings.precision = config::Precision::bf16;
  const auto set = build(j);
  const double bsh = static_cast<double>(b * 2048 * 2048) * 2, bs = static_cast<double>(b * 2048) * 4;
  // Per micro-batch: two all-reduces of b s h forward and two backward per layer, one for the embedding, one for the
  // head's input gradient; three of b s scalars for the loss.
  const program::Traffic t = traffic_of(set, 0, "tensor", "all_reduce");
  EXPECT_EQ(t.messages, m * (4 * 24 + 2 + 3));
  EXPECT_DOUBLE_EQ(t.bytes, static_cast<double>(m) * ((4 * 24 + 2) * bsh + 3 * bs));
}

TEST(Gpt, PipelineTrafficEqualsClosedFormula) {
  const std::int64_t m = 6;
  const auto set = build(job(model_1b3, 1, 4, 1, m));
  const double bsh = 2048.0 * 2048 * 4;
  for (int stage = 0; stage < 4; ++stage) {
    const program::Traffic up = traffic_of(set, stage, "pipeline+1", "send"),
                           down = traffic_of(set, stage, "pipeline-1", "send");
    EXPECT_EQ(up.messages, stage < 3 ? m : 0);
    EXPECT_EQ(down.messages, stage > 0 ? m : 0);
    EXPECT_DOUBLE_EQ(up.bytes, (stage < 3 ? static_cast<double>(m) : 0) * bsh);
    EXPECT_DOUBLE_EQ(down.bytes, (stage > 0 ? static_cast<double>(m) : 0) * bsh);
    EXPECT_EQ(traffic_of(set, stage, "pipeline-1", "receive").messages, stage > 0 ? m : 0);
  }
  const double table = 50304.0 * 2048 * 4;
  EXPECT_DOUBLE_EQ(traffic_of(set, 0, "embedding", "all_reduce").bytes, table);
  EXPECT_DOUBLE_EQ(traffic_of(set, 3, "embedding", "all_reduce").bytes, table);
  EXPECT_EQ(traffic_of(set, 1, "embedding", "all_reduce").messages, 0);
}

TEST(Gpt, DataParallelTrafficIsEveryGradientOnceInFp32) {
  Job j = job(model_1b3, 1, 1, 4, 2);
  j.settings.precision = config::Precision::bf16;
  const double parameters = 50304.0 * 2048 + 2048.0 * 2048 + 24 * (12.0 * 2048 * 2048 + 13 * 2048) + 2 * 2048;
  for (const std::int64_t bucket : {std::int64_t{1} << 20, std::int64_t{200} << 20, std::int64_t{1} << 40}) {
    for (const bool overlap : {true, false}) {
      j.settings.bucket_size_bytes = bucket;
      j.settings.overlap_grad_reduce = overlap;
      EXPECT_DOUBLE_EQ(traffic_of(build(j), 0, "data", "all_reduce").bytes, parameters * 4);
    }
  }
  EXPECT_EQ(traffic_of(build(j), 0, "data", "all_reduce").messages, 1);
}

TEST(Gpt, AccumulationMakesTheBatchFollowTheLayout) {
  const config::Model small{"m", 4, 64, 4, 256, 32};
  const Job by_batch = job(small, 1, 2, 2, 6, 3);
  Job by_accumulation = by_batch;
  by_accumulation.settings.gradient_accumulation = 6;
  by_accumulation.settings.global_batch_size = 1;  // without effect
  EXPECT_EQ(program::hash(build(by_accumulation)), program::hash(build(by_batch)));
  EXPECT_EQ(gpt::global_batch(by_accumulation.settings, by_accumulation.layout), 6 * 3 * 2);
  const Workload& gpt = workload_of(by_accumulation.settings);
  for (const int replicas : {1, 2, 8}) {
    by_accumulation.layout[program::Axis::data] = replicas;
    EXPECT_EQ(gpt.micro_batches(by_accumulation.settings, by_accumulation.layout), 6);
    EXPECT_EQ(gpt.tokens_per_step(small, by_accumulation.settings, by_accumulation.layout), 6 * 3 * 32 * replicas);
    EXPECT_EQ(gpt.why_impossible_on(small, by_accumulation.settings, by_accumulation.layout), "");
  }
  by_accumulation.settings.gradient_accumulation = 1 << 16;
  by_accumulation.settings.micro_batch_size = std::int64_t{1} << 31;
  EXPECT_NE(gpt.why_impossible_on(small, by_accumulation.settings, by_accumulation.layout), "");
}

TEST(Gpt, OverlapIsADifferenceOfDependenciesAlone) {
  Job j = job({"m", 4, 64, 4, 256, 32}, 1, 1, 4, 2);
  j.settings.bucket_size_bytes = 100 << 10;
  const auto on = build(j);
  j.settings.overlap_grad_reduce = false;
  const auto off = build(j);
  const auto lines = [](const program::ProgramSet& set) {
    std::multiset<std::string> all;
    for (program::Operation op : set.roles[0].step) {
      op.waits.clear();
      all.insert(program::describe(set.roles[0], op));
    }
    return all;
  };
  EXPECT_EQ(lines(on), lines(off));
  EXPECT_NE(program::hash(on), program::hash(off));
  // On: some bucket waits for an operation before the last of the backward pass; off: all wait for the last.
  const auto earliest_wait = [](const program::ProgramSet& set) {
    program::OperationId earliest = 1 << 30, last_backward = 0;
    const auto& step = set.roles[0].step;
    for (std::size_t i = 0; i < step.size(); ++i) {
      if (step[i].label.phase == program::Phase::backward) last_backward = static_cast<program::OperationId>(i);
      if (step[i].label.what == "gradient bucket" && !step[i].waits.empty())
        earliest = std::min(earliest, step[i].waits.back());
    }
    return std::pair(earliest, last_backward);
  };
  EXPECT_LT(earliest_wait(on).first, earliest_wait(on).second);
  EXPECT_EQ(earliest_wait(off).first, earliest_wait(off).second);
}

TEST(Gpt, VerifiesByRoleAndByRankUpTo512Ranks) {
  const config::Model small{"m", 8, 64, 8, 256, 16};
  for (const auto& [tp, pp, dp] : {std::array{1, 1, 1}, std::array{2, 2, 2}, std::array{4, 4, 4}, std::array{8, 8, 8},
                                   std::array{2, 1, 16}, std::array{1, 8, 4}, std::array{1, 3, 2}}) {
    for (const std::int64_t m : {1, 4, 9}) {
      const auto set = build(job(small, tp, pp, dp, m));
      EXPECT_EQ(texts(program::verify(set)), "");
      if (m == 4) {
        EXPECT_EQ(texts(program::verify(program::expand(set))), "");
      }
      EXPECT_EQ(texts(program::verify(program::lower(set, 0))), "");
    }
  }
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

TEST(Gpt, LoweringChangesNeitherFlopNorTraffic) {
  const auto set = build(job({"m", 4, 64, 4, 256, 32}, 2, 2, 2, 3));
  const auto low = program::lower(set, 0);
  EXPECT_DOUBLE_EQ(program::total_flop(set).model, program::total_flop(low).model);
  for (std::size_t r = 0; r < set.roles.size(); ++r) {
    const program::Count a = program::count(set, set.roles[r], set.roles[r].step),
                         b = program::count(low, low.roles[r], low.roles[r].step);
    EXPECT_EQ(a.traffic.size(), b.traffic.size());
    for (const auto& [key, t] : a.traffic) EXPECT_EQ(b.traffic.at(key).messages, t.messages);
    EXPECT_GT(b.operations, a.operations);
  }
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

TEST(Gpt, BrokenProgramIsFoundWithRankAndOperation) {
  auto set = program::expand(build(job({"m", 4, 64, 4, 256, 32}, 2, 2, 2, 4)));
  auto& step = set.roles[5].step;
  for (std::size_t i = 0; i < step.size(); ++i) {
    if (std::holds_alternative<program::Receive>(step[i].action)) {
      step[i].action = program::Fill{std::get<program::Receive>(step[i].action).data, 0};
      step[i].stream = compute_stream;
      break;
    }
  }
  const auto problems = program::verify(set);
  ASSERT_FALSE(problems.empty());
  EXPECT_THAT(texts(problems), HasSubstr("rank 1, step operation"));
}

TEST(Gpt, PipelineStagesKeepAtMostTheirDepthInFlight) {
  // 1F1B: memory of a stage does not grow with the number of micro-batches once it covers the pipeline.
  const config::Model m{"m", 8, 128, 8, 512, 64};
  const auto bytes = [&](std::int64_t micro_batches, int stage) {
    return program::plan_arena(build(job(m, 1, 4, 1, micro_batches)).roles[stage]).transient_bytes;
  };
  for (int stage = 0; stage < 4; ++stage) EXPECT_LE(bytes(32, stage), bytes(8, stage) * 1.1);
  EXPECT_GT(bytes(32, 0), 2 * bytes(32, 3) / 1.5);  // the first stage holds four, the last one (and the logits)
}

TEST(Gpt, ParametersNumberTheWholeModelOnce) {
  const config::Model m{"m", 4, 64, 4, 256, 32};
  program::Layout layout;
  layout[program::Axis::tensor] = 2;
  layout[program::Axis::pipeline] = 3;  // of 2, 1 and 1 layers
  double elements = 0;
  for (int stage = 0; stage < 3; ++stage) {
    for (const auto& p : gpt::parameters(m, {}, layout, stage)) {
      if (stage == 2 && p.name == "word_embeddings") {
        EXPECT_EQ(p.first_index, 0);
        continue;
      }
      EXPECT_EQ(p.first_index, elements) << p.name;
      for (const gpt::Slice& s : p.slices) elements += static_cast<double>(s.outer * s.full * s.inner);
      EXPECT_EQ(p.view.count, p.count());
    }
  }
  EXPECT_EQ(elements, 256 * 64 + 32 * 64 + 4 * (12 * 64 * 64 + 13 * 64) + 2 * 64);
}

TEST(Inputs, AreTheSameSamplesInEveryLayout) {
  Job j = job({"m", 2, 32, 2, 64, 16}, 1, 1, 1, 4);
  std::vector<std::int32_t> whole(4 * 16), part(16);
  make_inputs(j.model, j.settings, j.layout, {}, 7)
      ->fill(gpt::tokens_buffer, 3, std::as_writable_bytes(std::span(whole)));
  program::Layout split;
  split[program::Axis::data] = 4;
  for (int d = 0; d < 4; ++d) {
    program::Coordinates at;
    at[program::Axis::data] = d;
    make_inputs(j.model, j.settings, split, at, 7)
        ->fill(gpt::tokens_buffer, 3, std::as_writable_bytes(std::span(part)));
    EXPECT_TRUE(std::equal(part.begin(), part.end(), whole.begin() + d * 16));
  }
  std::vector<std::int32_t> labels(4 * 16);
  make_inputs(j.model, j.settings, j.layout, {}, 7)
      ->fill(gpt::labels_buffer, 3, std::as_writable_bytes(std::span(labels)));
  EXPECT_TRUE(std::equal(whole.begin() + 1, whole.begin() + 16, labels.begin()));
  for (const auto t : whole) EXPECT_TRUE(t >= 0 && t < 64);
}

}  // namespace
}  // namespace harness::workloads
