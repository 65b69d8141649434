// In every layout and rank order, a step trains as one rank does, over new and over reused connections.
#include <gtest/gtest.h>

#include <string_view>

#include "config/registry.h"
#include "trained.h"

namespace harness {
namespace {

using test::layout_of;
using test::LocalJob;

const config::Model tiny{"tiny", 2, 64, 4, 128, 32};

config::Settings eight_sequences() {
  config::Settings s;
  s.global_batch_size = 8;
  s.micro_batch_size = 2;
  return s;
}

// Consecutive blocks in a process reuse connections like this.
TEST(Connections, OfAnEarlierJobServeTheNextOneAsNewOnesWould) {
  const config::Settings settings = eight_sequences();
  const program::Layout layout = layout_of(2, 2, 2);
  LocalJob first(tiny, settings, layout);
  first.run(2);
  const std::vector<float> losses = first.losses(0);
  EXPECT_GT(first.messages(), 0);
  test::KeptConnections kept = first.release();
  for (int time = 0; time < 2; ++time) {
    LocalJob next(tiny, settings, layout, 1, kept);
    EXPECT_EQ(next.messages(), 0);
    next.run(2);
    EXPECT_EQ(next.losses(0), losses);
    kept = next.release();
  }
}

// A communicator with other ranks than before is created anew; the others are reused.
TEST(Connections, OfAnotherLayoutAreMadeAnew) {
  const config::Settings settings = eight_sequences();
  LocalJob first(tiny, settings, layout_of(2, 1, 2));
  first.run(1);
  LocalJob next(tiny, settings, layout_of(1, 2, 2), 1, first.release());
  EXPECT_GT(next.messages(), 0);
  next.run(2);
  const std::vector<float> losses = next.losses(0);
  LocalJob fresh(tiny, settings, layout_of(1, 2, 2));
  fresh.run(2);
  EXPECT_EQ(losses, fresh.losses(0));
}

// Groups sum in the order of coordinates, whatever the rank numbers: losses must be bitwise equal.
TEST(Layouts, InEveryRankOrderTheLossesAreTheSame) {
  config::Settings s = eight_sequences();
  s.bucket_size_bytes = 64 << 10;
  const config::Variable& rank_order = *config::find_variable("rank_order");
  std::vector<float> usual;
  for (const char* order : {"tp-dp-pp", "tp-pp-dp", "dp-tp-pp", "dp-pp-tp", "pp-tp-dp", "pp-dp-tp"}) {
    if (test::emulated && std::string_view(order) != "tp-dp-pp" && std::string_view(order) != "pp-dp-tp") continue;
    rank_order.parse(s, order);
    program::Layout layout = s.layout;
    for (const program::Axis axis : program::visible_axes) layout[axis] = 2;
    const std::vector<float> losses = test::train(tiny, s, layout, 2).losses;
    if (usual.empty()) usual = losses;
    EXPECT_EQ(losses, usual) << order;
  }
}

TEST(Layouts, TrainAsOneRank) {
  const config::Model model{"tiny", 5, 64, 4, 128, 32};  // stages differ in their number of layers
  for (const program::Layout& layout :
       {layout_of(2, 2, 1), layout_of(2, 1, 1), layout_of(1, 2, 1), layout_of(1, 1, 2), layout_of(2, 1, 2),
        layout_of(1, 2, 2), layout_of(2, 2, 2), layout_of(4, 2, 1)}) {
    test::expect_trains_as_one_rank(model, test::settings_on(layout, 8, 4), layout, "four micro-batches");
    if (test::emulated) return;
    config::Settings s = test::settings_on(layout, 8, 1);
    s.overlap_grad_reduce = false;
    test::expect_trains_as_one_rank(model, s, layout, "a micro-batch, nothing overlapped");
  }
}

}  // namespace
}  // namespace harness
