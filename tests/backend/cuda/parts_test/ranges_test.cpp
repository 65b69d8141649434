#include "backend/cuda/ranges.h"

#include <gtest/gtest.h>

namespace harness::cuda {
namespace {

program::Operation labelled(program::Phase phase, int micro_batch, int layer) {
  program::Operation operation{program::Matmul{}, 0, {}, -1, {}};
  operation.label = {"x", phase, micro_batch, layer, false};
  return operation;
}

TEST(Ranges, AnOperationStandsInItsStepPhaseAndLayer) {
  const auto path = [](program::Phase phase, int micro_batch, int layer) {
    return range_path(labelled(phase, micro_batch, layer).label);
  };
  EXPECT_EQ(path(program::Phase::forward, 0, -1), (RangePath{"step", "forward micro-batch 0"}));
  EXPECT_EQ(path(program::Phase::backward, 1, 3), (RangePath{"step", "backward micro-batch 1", "layer 3"}));
  EXPECT_EQ(path(program::Phase::gradient_sync, -1, -1), (RangePath{"step", "gradient_sync"}));
}

// No profiler listens here: that nothing comes of it is what is shown.
TEST(Ranges, CanBeWalkedWithoutAProfiler) {
  const std::vector<program::Operation> step = {labelled(program::Phase::forward, 0, 0),
                                                labelled(program::Phase::optimizer, -1, -1)};
  Ranges ranges(step);
  const Range replay("replay");
  ranges.before(0);
  ranges.before(1);
  ranges.end();
  EXPECT_THROW(ranges.before(2), std::out_of_range);
}

}  // namespace
}  // namespace harness::cuda
