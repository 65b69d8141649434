// Whatever the layout and the schedule, a step trains as one rank does. buckets_test.cpp has the shardings.
#include <gtest/gtest.h>

#include <string>

#include "support/soak.h"
#include "trained.h"

namespace harness::as_one_rank {
namespace {

using config::PipelineSchedule;
using config::Recompute;
using config::Settings;
using program::Layout;
using test::layout_of;
using test::settings_on;

const config::Model five_layers{"tiny", 5, 64, 4, 128, 32};  // stages and chunks are not equally long

void expect_trains_as_one_rank(const Settings& s, const Layout& layout, const std::string& what) {
  test::expect_trains_as_one_rank(five_layers, s, layout, what);
}

TEST(AsOneRank, EveryLayoutTrains) {
  for (const Layout& layout : {layout_of(2, 2, 1), layout_of(2, 1, 1), layout_of(1, 2, 1), layout_of(1, 1, 2),
                               layout_of(2, 1, 2), layout_of(1, 2, 2), layout_of(2, 2, 2), layout_of(4, 2, 1)}) {
    expect_trains_as_one_rank(settings_on(layout, 8, 4), layout, "four micro-batches");
    if (test::emulated) return;
    Settings s = settings_on(layout, 8, 1);
    s.overlap_grad_reduce = false;
    expect_trains_as_one_rank(s, layout, "a micro-batch, nothing overlapped");
  }
}

TEST(AsOneRank, SequenceParallelismTrains) {
  for (const Layout& layout : {layout_of(2, 1, 2), layout_of(2, 1, 1), layout_of(4, 1, 1), layout_of(2, 2, 1),
                               layout_of(4, 2, 1), layout_of(2, 2, 2)}) {
    for (const Recompute again : {Recompute::none, Recompute::full}) {
      Settings s = settings_on(layout, 8, 2);
      s.sequence_parallel = true;
      s.recompute = again;
      s.overlap_grad_reduce = again == Recompute::none;
      expect_trains_as_one_rank(s, layout, fmt::format("recompute {}", static_cast<int>(again)));
    }
    if (test::emulated) return;
  }
}

TEST(AsOneRank, EveryScheduleTrainsWithTheLeversOfMemory) {
  for (const Layout& layout : {layout_of(1, 2, 2), layout_of(2, 2, 2), layout_of(1, 4, 2)}) {
    if (test::emulated) continue;
    for (const auto schedule : {PipelineSchedule::gpipe, PipelineSchedule::interleaved}) {
      if (schedule == PipelineSchedule::interleaved && layout[program::Axis::pipeline] > 2) continue;  // five layers
      for (const Recompute again : {Recompute::none, Recompute::selective, Recompute::full}) {
        Settings s = settings_on(layout, 8, 4);
        s.pipeline_schedule = schedule;
        s.sequence_parallel = true;
        s.recompute = again;
        s.attention = config::AttentionKind::unfused;
        expect_trains_as_one_rank(
            s, layout, fmt::format("schedule {}, recompute {}", static_cast<int>(schedule), static_cast<int>(again)));
      }
    }
  }
}

}  // namespace
}  // namespace harness::as_one_rank
