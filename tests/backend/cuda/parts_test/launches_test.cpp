#include "backend/cuda/cuda_backend.h"

#include <gtest/gtest.h>

#include <map>

#include "base/text.h"
#include "workloads/workload.h"

namespace harness::cuda {
namespace {

program::Operation on(program::StreamId stream, std::vector<program::OperationId> waits = {}, std::int32_t group = -1) {
  program::Operation op;
  op.action = program::Fill{{0, 0, 1}, 0};
  op.stream = stream;
  op.waits = std::move(waits);
  op.fused_group = group;
  return op;
}

TEST(Launches, OneStreamNeedsNoEvents) {
  const LaunchList list = make_launches({on(0), on(0, {0})}, 3);
  EXPECT_EQ(list.launches, (std::vector<Launch>{{0, {0}, {}}, {0, {1}, {}}}));
  EXPECT_TRUE(list.with_event.empty());
  EXPECT_TRUE(list.streams.empty());
}

TEST(Launches, WaitOnlyForTheLastOfAStreamAndOnlyOnce) {
  const LaunchList list = make_launches({on(0), on(0), on(1, {0, 1}), on(1, {0})}, 2);
  EXPECT_EQ(list.launches, (std::vector<Launch>{{0, {0}, {}}, {0, {1}, {}}, {1, {2}, {1}}, {1, {3}, {}}}));
}

TEST(Launches, AWaitForHalfAGroupIsRefused) {
  EXPECT_THROW(make_launches({on(1, {}, 7), on(0, {0}), on(1, {}, 7)}, 2), Error);
}

// Checks that stream order and events enforce every dependency. A vector clock over the launches tells which operations
// are known to be complete at each.
void expect_enforced(const std::vector<program::Operation>& operations, std::size_t streams) {
  const LaunchList list = make_launches(operations, streams);
  using Known = std::vector<std::int64_t>;  // per stream: highest operation known to be complete
  std::vector<Known> at(streams, Known(streams, -1));
  std::map<program::OperationId, Known> recorded;
  std::size_t launched = 0;
  for (const Launch& launch : list.launches) {
    Known& here = at[launch.stream];
    for (const program::OperationId w : launch.waits) {
      ASSERT_TRUE(recorded.contains(w)) << "a wait for an event that was never recorded";
      for (std::size_t s = 0; s < streams; ++s) here[s] = std::max(here[s], recorded[w][s]);
    }
    for (const program::OperationId member : launch.members) {
      for (const program::OperationId w : operations[member].waits) {
        ASSERT_GE(here[operations[w].stream], w) << "operation " << member << " does not wait for " << w;
      }
      here[launch.stream] = member;
      ++launched;
    }
    for (const program::OperationId member : launch.members) {
      if (list.with_event.contains(member)) recorded[member] = here;
    }
  }
  EXPECT_EQ(launched, operations.size());
  for (const program::Operation& op : operations) EXPECT_TRUE(op.stream == 0 || list.streams.contains(op.stream));
}

TEST(Launches, EnforceEveryDependencyOfRealSteps) {
  const config::Model model{"test", 4, 32, 4, 64, 16};
  for (const int tp : {1, 2}) {
    for (const int pp : {1, 2, 4}) {
      for (const int dp : {1, 2}) {
        program::Layout layout;
        layout[program::Axis::tensor] = tp;
        layout[program::Axis::pipeline] = pp;
        layout[program::Axis::data] = dp;
        config::Settings settings;
        settings.global_batch_size = 8;
        settings.bucket_size_bytes = 1024;
        const program::ProgramSet set = workloads::build_programs(model, settings, layout);
        for (const program::Program& role : set.roles) {
          expect_enforced(role.init, role.streams.size());
          expect_enforced(role.step, role.streams.size());
        }
      }
    }
  }
}

}  // namespace
}  // namespace harness::cuda
