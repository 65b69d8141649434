#include <gtest/gtest.h>

#include "gathered_gradients.h"
#include "local_job.h"

namespace harness {
namespace {

using config::AttentionKind;
using config::Recompute;

struct Attended {
  std::vector<float> losses;
  test::Gradients gradients;
};

Attended attended(const program::Layout& layout, AttentionKind kind, Recompute recompute) {
  const config::Model model{"tiny", 2, 64, 4, 128, 32};
  config::Settings s;
  s.global_batch_size = 8;
  s.micro_batch_size = 2;
  s.attention = kind;
  s.recompute = recompute;
  test::LocalJob job(model, s, layout);
  job.run(2);
  return {job.losses(0), test::gathered_gradients(job, model, s, layout)};
}

TEST(UnfusedAttention, TrainsAsFusedAttentionDoes) {
  const bool emulated = test::tested_backend == config::BackendKind::cuda;  // and slow, and adds in any order
  for (const auto& layout : {test::layout_of(1, 1, 1), test::layout_of(2, 2, 1)}) {
    if (emulated && layout.ranks() > 1) continue;
    const Attended fused = attended(layout, AttentionKind::fused, Recompute::none);
    const Attended unfused = attended(layout, AttentionKind::unfused, Recompute::none);
    EXPECT_NEAR(unfused.losses[0] / fused.losses[0], 1, 1e-6);
    EXPECT_NEAR(unfused.losses[1] / fused.losses[1], 1, 1e-5);
    test::expect_equal(unfused.gradients, fused.gradients, 1e-4, program::text_of(layout));
    for (const Recompute recompute : {Recompute::selective, Recompute::full}) {
      const Attended again = attended(layout, AttentionKind::unfused, recompute);
      EXPECT_NEAR(again.losses[1] / unfused.losses[1], 1, emulated ? 1e-6 : 0);
      test::expect_equal(again.gradients, unfused.gradients, emulated ? 1e-4 : 0, "recomputed");
    }
  }
}

}  // namespace
}  // namespace harness
