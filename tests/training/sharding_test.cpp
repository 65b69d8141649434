// Gradient buckets: reduction in bf16, and reduction in every micro-batch.
#include <gtest/gtest.h>

#include <string>

#include "support/soak.h"
#include "trained.h"

namespace harness {
namespace {

using config::Sharding;
using test::layout_of;

const config::Model four_layers{"tiny", 4, 64, 4, 128, 32};
// Sequences of all replicas together: divisible by 2, 3 and 4 replicas, or by 2 and 4 where a step is slow.
constexpr std::int64_t sequences = test::few_cells ? 8 : 24;

// Each number on the wire is rounded to 8 significant bits: a relative error of at most 2^-9, with either sign. For
// sums over d replicas, the ring rounds d - 1 more times. The bound is that of docs/method.md.
TEST(GradReducePrecision, Bf16TrainsAlmostAsFp32Does) {
  for (const program::Layout& layout : {layout_of(1, 2, 2), layout_of(2, 1, 3)}) {
    if (test::emulated && layout[program::Axis::pipeline] == 1) continue;
    for (const Sharding sharding : {Sharding::none, Sharding::optimizer, Sharding::parameters}) {
      if (sharding == Sharding::parameters && (layout[program::Axis::pipeline] > 1 || test::emulated)) continue;
      for (const bool beside : {false, true}) {
        if (test::emulated && (beside || sharding == Sharding::none)) continue;
        config::Settings s = test::settings_on(layout, sequences, 4);
        s.sharding = sharding;
        s.overlap_optimizer = beside;
        const test::Trained full = test::train(four_layers, s, layout);
        s.grad_reduce_type = program::DType::bf16;
        const test::Trained half = test::train(four_layers, s, layout);
        const std::string what = fmt::format("{}, sharding {}", program::text_of(layout), static_cast<int>(sharding));
        EXPECT_NEAR(half.losses[0] / full.losses[0], 1, test::emulated ? 1e-6 : 0) << what;
        EXPECT_NE(half.losses.back(), full.losses.back()) << what;
        EXPECT_NEAR(half.losses.back() / full.losses.back(), 1, 1e-3) << what;
        test::expect_equal(half.gradients, full.gradients, 5e-3, what);
        for (const auto& [name, values] : full.gradients) {
          EXPECT_GT(test::distance(half.gradients.at(name), values), 1e-4) << what << ", " << name;
        }
      }
    }
  }
}

// Buckets are reduced once a step or once a micro-batch; there is one bucket, or there are many, cut anywhere.
TEST(BucketsOfASharding, OfFiveMicroBatchesTrainAsOneRank) {
  if (test::emulated) return;
  for (const Sharding sharding : {Sharding::optimizer, Sharding::gradients, Sharding::parameters}) {
    for (const bool whole : {true, false}) {
      for (const program::Layout& layout :
           {layout_of(1, 1, 2), layout_of(1, 1, 4), layout_of(2, 1, 2), layout_of(1, 1, 8), layout_of(2, 1, 4)}) {
        if (test::sanitized && layout.ranks() > 2) continue;
        config::Model model{"tiny", 2, 64, 4, 128, 32};
        model.tied_embeddings = whole;
        config::Settings s = test::settings_on(layout, std::int64_t{5} * layout[program::Axis::data], 5);
        s.sharding = sharding;
        s.bucket_size_bytes = whole ? 1 << 30 : 16 << 10;
        test::expect_trains_as_one_rank(model, s, layout, fmt::format("sharding {}", static_cast<int>(sharding)));
      }
    }
  }
}

}  // namespace
}  // namespace harness
