#include "backend/cuda/profile.h"

#include <gtest/gtest.h>

namespace harness::cuda {
namespace {

ActivityRecord lasting(std::uint64_t external, std::uint64_t start, std::uint64_t end) {
  constexpr std::uint64_t begin_ns = 1'700'000'000'000'000'000;  // as large as CUPTI's timestamps
  return {.external_id = external, .start_ns = begin_ns + start, .end_ns = begin_ns + end};
}

program::Operation on_stream(program::Action action, program::StreamId stream, int group = -1) {
  return {std::move(action), stream, {}, group, {}};
}

TEST(Attribution, AnOperationLastsFromItsFirstRecordToItsLast) {
  const std::vector<program::Operation> step = {on_stream(program::Matmul{}, 0), on_stream(program::Gelu{}, 0),
                                                on_stream(program::AllReduce{}, 1)};
  // The matmul is two kernels and a memset, the Gelu left no record, and one record has no operation.
  const std::vector<ActivityRecord> records = {lasting(1, 300, 400), lasting(1, 100, 110), lasting(1, 120, 290),
                                               lasting(3, 200, 900), lasting(0, 10, 1500)};
  const auto intervals = operation_intervals(records, make_launches(step, 3).launches);
  ASSERT_EQ(intervals.size(), 2u);
  EXPECT_EQ(intervals[0].operation, 0);
  EXPECT_DOUBLE_EQ(intervals[0].start_s, 0);
  EXPECT_DOUBLE_EQ(intervals[0].end_s, 300e-9);
  EXPECT_EQ(intervals[1].operation, 2);
  EXPECT_EQ(intervals[1].stream, 1);
  EXPECT_DOUBLE_EQ(intervals[1].start_s, 100e-9);
  EXPECT_DOUBLE_EQ(intervals[1].end_s, 800e-9);
}

TEST(Attribution, MembersOfAGroupShareItsInterval) {
  // The first send and receive of group 7 start as one and leave one record, under the id of the send, with a product
  // on another stream in between. A later group of the same number on the same stream is a separate group.
  const std::vector<program::Operation> step = {on_stream(program::Send{}, 1, 7),    on_stream(program::Matmul{}, 0),
                                                on_stream(program::Receive{}, 1, 7), on_stream(program::AllReduce{}, 1),
                                                on_stream(program::Send{}, 1, 7),    on_stream(program::Send{}, 2, 7)};
  const std::vector<ActivityRecord> records = {lasting(1, 10, 50), lasting(2, 0, 70), lasting(4, 60, 80),
                                               lasting(5, 90, 95)};
  const auto intervals = operation_intervals(records, make_launches(step, 3).launches);
  std::vector<program::OperationId> ids;
  for (const program::Interval& interval : intervals) ids.push_back(interval.operation);
  ASSERT_EQ(ids, (std::vector<program::OperationId>{0, 1, 2, 3, 4}));
  EXPECT_DOUBLE_EQ(intervals[2].start_s, 10e-9);
  EXPECT_DOUBLE_EQ(intervals[2].end_s, 50e-9);
  EXPECT_EQ(intervals[2].stream, 1);
  EXPECT_DOUBLE_EQ(intervals[4].start_s, 90e-9);
}

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

// Without a profiler, walking the ranges must have no effect.
TEST(Ranges, CanBeWalkedWithoutAProfiler) {
  const std::vector<program::Operation> step = {labelled(program::Phase::forward, 0, 0),
                                                labelled(program::Phase::optimizer, -1, -1)};
  Ranges ranges(step);
  ranges.before(0);
  ranges.before(1);
  ranges.go_to({});
  EXPECT_THROW(ranges.before(2), std::out_of_range);
}

}  // namespace
}  // namespace harness::cuda
