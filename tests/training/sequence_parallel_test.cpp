#include <gtest/gtest.h>

#include "trained.h"

namespace harness {
namespace {

using test::layout_of;

const config::Model four_heads{"tiny", 2, 64, 4, 128, 32};

test::Trained train_whole(const config::Settings& settings, const program::Layout& layout) {
  return test::train(four_heads, settings, layout, 2);
}

config::Settings two_micro_batches(const program::Layout& layout) {
  config::Settings s;
  s.global_batch_size = 8;
  s.micro_batch_size = 4 / layout[program::Axis::data];
  s.bucket_size_bytes = 64 << 10;  // cuts layers
  return s;
}

// A missing sum over the tensor ranks moves the loss of a step by less than rounding does, but the gradient of a norm
// or of a bias altogether: every parameter is held against its gradient on one rank.
TEST(SequenceParallel, TrainsAsOneRankDoes) {
  const test::Trained alone = train_whole(two_micro_batches({}), {});
  EXPECT_EQ(alone.last_gradients.size(), 2u + 2 * 12 + 2);
  for (const auto& layout : {layout_of(2, 1, 1), layout_of(4, 1, 1), layout_of(2, 2, 1), layout_of(2, 1, 2),
                             layout_of(4, 2, 1), layout_of(2, 2, 2)}) {
    if (test::emulated && layout != layout_of(2, 1, 2)) continue;
    for (const config::Recompute recompute : {config::Recompute::none, config::Recompute::full}) {
      config::Settings s = two_micro_batches(layout);
      s.sequence_parallel = true;
      s.recompute = recompute;
      s.overlap_grad_reduce = recompute == config::Recompute::none;
      const test::Trained divided = train_whole(s, layout);
      const std::string where = program::text_of(layout);
      EXPECT_NEAR(divided.losses[0] / alone.losses[0], 1, 1e-6) << where;
      EXPECT_NEAR(divided.losses[1] / alone.losses[1], 1, 1e-5) << where;
      test::expect_equal(divided.last_gradients, alone.last_gradients, 1e-4, where);
    }
  }
}

TEST(SequenceParallel, UpdatesBesideTheBackwardPassAreThoseAfterIt) {
  if (test::emulated) GTEST_SKIP() << "Layouts has it, and this is slow";
  const program::Layout layout = layout_of(2, 1, 2);
  config::Settings s = two_micro_batches(layout);
  s.sequence_parallel = true;
  const test::Trained after = train_whole(s, layout);
  s.overlap_optimizer = true;
  const test::Trained beside = train_whole(s, layout);
  EXPECT_EQ(beside.losses, after.losses);
  EXPECT_EQ(beside.last_gradients, after.last_gradients);
}

}  // namespace
}  // namespace harness
