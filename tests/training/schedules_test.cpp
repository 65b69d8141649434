#include <gtest/gtest.h>

#include <array>
#include <vector>

#include "trained.h"

namespace harness {
namespace {

using config::PipelineSchedule;

// Not a multiple of 2 * 4, or of 2 * 2 where only two stages are tried: stages and chunks are not equally long.
const config::Model deep{"deep", test::few_cells ? 5 : 9, 32, 2, 128, 16};

constexpr std::int64_t batch = test::few_cells ? 8 : 16;

config::Settings settings_of(PipelineSchedule schedule, std::int64_t micro_batch_size) {
  config::Settings s;
  s.pipeline_schedule = schedule;
  s.global_batch_size = batch;
  s.micro_batch_size = micro_batch_size;
  s.bucket_size_bytes = 16 << 10;
  return s;
}

// Every parameter adds up the gradients of the micro-batches in the same order, and no update waits for others: without
// replicas, whose sums begin at other ends of the buckets, training is the same to the last bit.
TEST(Schedules, TrainAsOneForwardOneBackwardDoes) {
  const test::Gradients alone =
      test::train(deep, settings_of(PipelineSchedule::one_forward_one_backward, batch), {}).gradients;
  for (const auto& [tp, pp, dp] : {std::array{1, 2, 1}, std::array{2, 2, 1}, std::array{1, 2, 2}, std::array{2, 2, 2},
                                   std::array{1, 4, 1}, std::array{1, 4, 2}}) {
    if (test::emulated && tp * pp * dp != 2) continue;
    const program::Layout layout = test::layout_of(tp, pp, dp);
    const std::int64_t micro_batch = 2 / dp;  // eight of them, or four
    const test::Trained usual =
        test::train(deep, settings_of(PipelineSchedule::one_forward_one_backward, micro_batch), layout);
    for (const auto schedule : {PipelineSchedule::gpipe, PipelineSchedule::interleaved}) {
      const std::string what = fmt::format("schedule {}, TP{} PP{} DP{}", static_cast<int>(schedule), tp, pp, dp);
      const test::Trained ours = test::train(deep, settings_of(schedule, micro_batch), layout);
      test::expect_equal(ours.gradients, alone, 1e-4, what);
      if (dp == 1 && !test::emulated) {  // where embeddings' gradients add up in any order
        EXPECT_EQ(ours.losses, usual.losses) << what;
        EXPECT_EQ(ours.gradients, usual.gradients) << what;
      }
      for (std::size_t i = 0; i < usual.losses.size(); ++i)
        EXPECT_NEAR(ours.losses[i] / usual.losses[i], 1, 1e-5) << what;
    }
  }
}

// What a lever keeps or divides, another schedule keeps for longer and in another order.
TEST(Schedules, GoTogetherWithTheLeversOfMemory) {
  if (test::emulated) GTEST_SKIP() << "slow, and each of the levers has a test of its own";
  const test::Gradients alone =
      test::train(deep, settings_of(PipelineSchedule::one_forward_one_backward, batch), {}).gradients;
  for (const auto& layout : {test::layout_of(2, 2, 1), test::layout_of(2, 2, 2)}) {
    for (const auto recompute : {config::Recompute::none, config::Recompute::selective, config::Recompute::full}) {
      config::Settings s = settings_of(PipelineSchedule::interleaved, 2 / layout[program::Axis::data]);
      s.sequence_parallel = true;
      s.recompute = recompute;
      s.attention = config::AttentionKind::unfused;
      test::expect_equal(test::train(deep, s, layout).gradients, alone, 1e-4,
                         fmt::format("recompute {}, {}", static_cast<int>(recompute), program::text_of(layout)));
    }
  }
}

}  // namespace
}  // namespace harness
