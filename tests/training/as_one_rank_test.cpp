// Whatever the layout, a step trains as one rank does. alike_test.cpp has the levers, buckets_test.cpp the shardings.
#include <gtest/gtest.h>

#include "trained.h"

namespace harness::as_one_rank {
namespace {

using config::Settings;
using program::Layout;
using test::layout_of;
using test::settings_on;

const config::Model five_layers{"tiny", 5, 64, 4, 128, 32};  // stages and chunks are not equally long

TEST(AsOneRank, EveryLayoutTrains) {
  for (const Layout& layout : {layout_of(2, 2, 1), layout_of(2, 1, 1), layout_of(1, 2, 1), layout_of(1, 1, 2),
                               layout_of(2, 1, 2), layout_of(1, 2, 2), layout_of(2, 2, 2), layout_of(4, 2, 1)}) {
    test::expect_trains_as_one_rank(five_layers, settings_on(layout, 8, 4), layout, "four micro-batches");
    if (test::emulated) return;
    Settings s = settings_on(layout, 8, 1);
    s.overlap_grad_reduce = false;
    test::expect_trains_as_one_rank(five_layers, s, layout, "a micro-batch, nothing overlapped");
  }
}

}  // namespace
}  // namespace harness::as_one_rank
