#include <gtest/gtest.h>

#include "trained.h"

namespace harness {
namespace {

using config::AttentionKind;
using config::Recompute;

test::Trained attended(const program::Layout& layout, AttentionKind kind, Recompute recompute) {
  const config::Model model{"tiny", 2, 64, 4, 128, 32};
  config::Settings s;
  s.global_batch_size = 8;
  s.micro_batch_size = 2;
  s.attention = kind;
  s.recompute = recompute;
  return test::train(model, s, layout, 2);
}

TEST(UnfusedAttention, TrainsAsFusedAttentionDoes) {
  for (const auto& layout : {test::layout_of(1, 1, 1), test::layout_of(2, 2, 1)}) {
    if (test::emulated && layout.ranks() > 1) continue;
    const test::Trained fused = attended(layout, AttentionKind::fused, Recompute::none);
    const test::Trained unfused = attended(layout, AttentionKind::unfused, Recompute::none);
    EXPECT_NEAR(unfused.losses[0] / fused.losses[0], 1, 1e-6);
    EXPECT_NEAR(unfused.losses[1] / fused.losses[1], 1, 1e-5);
    test::expect_equal(unfused.last_gradients, fused.last_gradients, 1e-4, program::text_of(layout));
    for (const Recompute recompute : {Recompute::selective, Recompute::full}) {
      const test::Trained again = attended(layout, AttentionKind::unfused, recompute);
      EXPECT_NEAR(again.losses[1] / unfused.losses[1], 1, test::emulated ? 1e-6 : 0);
      test::expect_equal(again.last_gradients, unfused.last_gradients, test::emulated ? 1e-4 : 0, "recomputed");
    }
  }
}

}  // namespace
}  // namespace harness
