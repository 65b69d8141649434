#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "gpt_jobs.h"
#include "program/arena.h"
#include "program/count.h"
#include "program/saved.h"
#include "small_gpt.h"

namespace harness::workloads {
namespace {

using ::testing::HasSubstr;

constexpr int micro_batches = 3;

Job recomputing(int tp, int pp, int layers = 0, int dp = 1) {
  Job j = job(small_gpt, tp, pp, dp, micro_batches, small_batch);
  j.settings.precision = config::Precision::bf16;
  j.settings.recompute = config::Recompute::full;
  j.settings.recompute_layers = layers;
  return j;
}

Job keeping(Job j) {
  j.settings.recompute = config::Recompute::none;
  return j;
}

// 24 b s h^2 (1 + s / 12 h) for a layer's forward pass with causal attention at half: 96 instead of the 72 of
// Narayanan et al. 2021, equation 3. The logits are not computed again.
TEST(Recompute, FlopEqualClosedFormula) {
  const double s = 32, h = 64, tokens = micro_batches * small_rows;
  for (const auto& [tp, pp] : {std::array{1, 1}, std::array{4, 1}, std::array{2, 2}}) {
    for (const int layers : {0, 1, 2}) {
      const Job j = recomputing(tp, pp, layers);
      const double again = layers == 0 ? 4 : layers * pp;
      EXPECT_NEAR(program::total_recomputed_flop(build(j)) / (24 * tokens * again * h * h * (1 + s / (12 * h))), 1,
                  1e-12);
      EXPECT_EQ(program::total_flop(build(j)).model, program::total_flop(build(keeping(j))).model);
    }
  }
}

TEST(Recompute, RepeatsTheTwoAllReducesOfALayersForwardPass) {
  const auto all_reduces = [](const Job& j) {
    const auto set = build(j);
    return traffic_of(set, 0, "tensor", "all_reduce");
  };
  for (const int layers : {0, 3}) {
    const Job j = recomputing(2, 1, layers);
    const std::int64_t more = 2 * micro_batches * (layers == 0 ? 4 : layers);
    EXPECT_EQ(all_reduces(j).messages - all_reduces(keeping(j)).messages, more);
    EXPECT_EQ(all_reduces(j).bytes - all_reduces(keeping(j)).bytes, static_cast<double>(more * small_stream));
  }
}

// Korthikanti et al. 2022, table 2: 2 s b h of 16-bit numbers for each layer, its input. With sums over ranks the first
// norm of a layer makes it, otherwise the layer below; the embedding makes that of the first layer.
TEST(Recompute, KeepsTheInputOfEachLayer) {
  for (const int t : {1, 2, 4}) {
    const auto bytes = program::saved_bytes(build(recomputing(t, 1)).roles[0]);
    for (int micro_batch = 0; micro_batch < micro_batches; ++micro_batch) {
      EXPECT_EQ(bytes.contains({micro_batch, 0}), t == 1);
      for (int layer = t == 1 ? 0 : 1; layer < 4; ++layer) EXPECT_EQ(bytes.at({micro_batch, layer}), small_stream) << t;
    }
  }
}

TEST(Recompute, OfSomeLayersKeepsTheOthersWhole) {
  const auto some = program::saved_bytes(build(recomputing(2, 2, 1)).roles[1]);
  const auto none = program::saved_bytes(build(keeping(recomputing(2, 2))).roles[1]);
  EXPECT_EQ(some.at({0, 2}), small_stream);  // its input, which was received
  EXPECT_EQ(some.at({0, 3}), none.at({0, 3}));
}

TEST(Recompute, TheArenaShrinksByWhatIsNotKept) {
  const auto transient = [](const Job& j) { return program::plan_arena(build(j).roles[0]).transient_bytes; };
  const auto kept = [](const Job& j) {
    std::int64_t sum = 0;
    for (const auto& [pass, bytes] : program::saved_bytes(build(j).roles[0])) {
      if (pass.layer >= 0) sum += bytes;
    }
    return sum;
  };
  for (const int t : {1, 2}) {
    Job j = recomputing(t, 1);
    j.model.layers = 16;
    j.settings.global_batch_size = small_batch;  // one micro-batch
    const std::int64_t freed = kept(keeping(j)) - kept(j);
    const std::int64_t shrunk = transient(keeping(j)) - transient(j);
    // But for the one layer that is whole again while its gradients are computed.
    EXPECT_GT(shrunk, freed * 14 / 16) << t;
    EXPECT_LE(shrunk, freed) << t;
  }
}

TEST(Recompute, VerifiesByRoleAndByRank) {
  for (const auto& [tp, pp, dp] : {std::array{1, 1, 1}, std::array{2, 2, 2}, std::array{4, 1, 2}}) {
    for (const int layers : {0, 1}) {
      const auto set = build(recomputing(tp, pp, layers, dp));
      EXPECT_EQ(texts(program::verify(set)), "");
      EXPECT_EQ(texts(program::verify(program::expand(set))), "");
    }
  }
}

TEST(Recompute, MoreLayersThanAStageHasAreRefused) {
  const auto why = [](const Job& j) {
    return workload_of(j.settings).why_impossible_on(j.model, j.settings, j.layout);
  };
  EXPECT_EQ(why(recomputing(1, 2, 2)), "");
  EXPECT_THAT(why(recomputing(1, 2, 3)), HasSubstr("more than the 2 layers of a chunk of the model; allowed: 1 to 2"));
  EXPECT_EQ(why(keeping(recomputing(1, 2, 3))), "");
}

}  // namespace
}  // namespace harness::workloads
