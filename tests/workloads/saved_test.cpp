#include "program/saved.h"

#include <gtest/gtest.h>

#include "gpt_jobs.h"
#include "small_gpt.h"

namespace harness::workloads {
namespace {

// Korthikanti et al. 2022, "Reducing Activation Recomputation in Large Transformer Models", section 4.2.1: with t
// tensor-parallel ranks a layer keeps s b h (10 + 24 / t) bytes of 16-bit numbers when its attention keeps no scores.
// 2 s b h of them are masks of two dropouts, which this model does not have. What they leave out as small is here: mean
// and deviation of each row for two norms, and for the attention a number per row and head of this rank.
std::int64_t of_layer(std::int64_t t) {
  return small_rows * small_gpt.hidden * (8 + 24 / t) + 4 * small_rows * (2 * 2 + small_gpt.heads / t);
}

std::map<program::ForwardPass, std::int64_t> saved(int tp, int pp, int stage) {
  Job j = job(small_gpt, tp, pp, 1, 3, small_batch);
  j.settings.precision = config::Precision::bf16;
  return program::saved_bytes(build(j).roles[stage]);
}

TEST(SavedBytes, OfALayerEqualTheClosedFormula) {
  for (const int t : {1, 2, 4}) {
    const auto bytes = saved(t, 1, 0);
    for (int micro_batch = 0; micro_batch < 3; ++micro_batch) {
      // With sums over ranks a norm makes the stream that it keeps, but for the first, which finds the embedding.
      EXPECT_EQ(bytes.at({micro_batch, 0}), of_layer(t) - (t > 1 ? small_stream : 0));
      for (int layer = 1; layer < 4; ++layer) EXPECT_EQ(bytes.at({micro_batch, layer}), of_layer(t)) << t;
    }
    EXPECT_EQ(bytes.size(), 3u * (4 + 1));
  }
}

TEST(SavedBytes, OfEmbeddingAndHeadAreTheEndsOfTheStreamAndTheLogits) {
  const std::int64_t norm = small_stream + 4 * small_rows * 2, logits = 2 * small_rows * 256;
  EXPECT_EQ(saved(1, 1, 0).at({0, -1}), small_stream + norm + logits);
  // The stream that enters the first norm is the embedding, or what the stage before sent to the first layer; what a
  // stage sends on, it does not keep.
  EXPECT_EQ(saved(1, 2, 0).at({0, -1}), small_stream);
  EXPECT_EQ(saved(1, 2, 0).at({0, 0}), of_layer(1));
  EXPECT_EQ(saved(1, 2, 0).at({0, 1}), of_layer(1) - small_stream);
  EXPECT_EQ(saved(1, 2, 1).at({0, -1}), norm + logits);
  EXPECT_EQ(saved(1, 2, 1).at({0, 2}), small_stream + of_layer(1));
  EXPECT_EQ(saved(1, 2, 1).at({0, 3}), of_layer(1));
}

TEST(SavedBytes, AreNotThoseOfWhatIsComputedAgain) {
  Job j = job(small_gpt, 1, 1, 1, 1);
  auto set = build(j);
  for (program::Operation& op : set.roles[0].step) {
    if (op.label.phase == program::Phase::forward && op.label.layer == 2) op.label.recomputed = true;
  }
  const auto bytes = program::saved_bytes(set.roles[0]);
  EXPECT_FALSE(bytes.contains({0, 2}));
  EXPECT_TRUE(bytes.contains({0, 1}));
}

}  // namespace
}  // namespace harness::workloads
