#include <gtest/gtest.h>

#include "gpt_jobs.h"
#include "program/count.h"
#include "program/saved.h"
#include "small_gpt.h"

namespace harness::workloads {
namespace {

using config::AttentionKind;
using config::Recompute;

constexpr int micro_batches_here = 3;

program::ProgramSet attending(int tp, AttentionKind kind, Recompute recompute = Recompute::none) {
  Job j = job(small_gpt, tp, 1, 1, micro_batches_here, small_batch);
  j.settings.precision = config::Precision::bf16;
  j.settings.attention = kind;
  j.settings.recompute = recompute;
  return build(j);
}

// b a s^2 numbers of bf16, divided by heads.
std::int64_t probability_bytes(int tp) {
  return 2 * small_batch * small_gpt.heads / tp * small_gpt.sequence * small_gpt.sequence;
}

std::int64_t saved_of_layers(const program::ProgramSet& set) {
  std::int64_t sum = 0;
  for (const auto& [pass, bytes] : program::saved_bytes(set.roles[0])) sum += pass.layer >= 0 ? bytes : 0;
  return sum;
}

TEST(UnfusedAttention, KeepsTheProbabilitiesOfEachLayer) {
  for (const int t : {1, 2, 4}) {
    const std::int64_t more =
        saved_of_layers(attending(t, AttentionKind::unfused)) - saved_of_layers(attending(t, AttentionKind::fused));
    EXPECT_EQ(more, micro_batches_here * small_gpt.layers * probability_bytes(t)) << t;
  }
}

TEST(UnfusedAttention, MovesTheProbabilitiesOnceInEachDirection) {
  const auto bytes = [](const program::ProgramSet& set) {
    double sum = 0;
    for (const program::Operation& op : set.roles[0].step) {
      const bool attention = program::name_of(op.action).starts_with("attention");
      sum += attention ? program::bytes_touched(set.roles[0], op.action) : 0;
    }
    return sum;
  };
  EXPECT_EQ(bytes(attending(2, AttentionKind::unfused)) - bytes(attending(2, AttentionKind::fused)),
            static_cast<double>(2 * micro_batches_here * small_gpt.layers * probability_bytes(2)));
}

TEST(UnfusedAttention, SelectiveRecomputationFreesThemExactly) {
  for (const int t : {1, 2}) {
    const auto kept = attending(t, AttentionKind::unfused);
    const auto again = attending(t, AttentionKind::unfused, Recompute::selective);
    EXPECT_EQ(saved_of_layers(again), saved_of_layers(attending(t, AttentionKind::fused))) << t;
    EXPECT_EQ(program::total_flop(again).model, program::total_flop(kept).model);
    // Of each layer two products of b s^2 h / 2 multiply-adds.
    const auto h = static_cast<double>(small_gpt.hidden), s = static_cast<double>(small_gpt.sequence);
    EXPECT_NEAR(program::total_recomputed_flop(again) / (2 * 4 * micro_batches_here * small_batch * s * s * h), 1,
                1e-12);
    EXPECT_EQ(texts(program::verify(again)), "");
    EXPECT_EQ(texts(program::verify(program::expand(again))), "");
  }
}

TEST(UnfusedAttention, FusedAttentionLeavesNothingToSelectiveRecomputation) {
  EXPECT_EQ(program::hash(attending(2, AttentionKind::fused, Recompute::selective)),
            program::hash(attending(2, AttentionKind::fused)));
}

}  // namespace
}  // namespace harness::workloads
