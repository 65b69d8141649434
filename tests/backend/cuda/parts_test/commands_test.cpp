#include "backend/cuda/cuda_backend.h"

#include <gtest/gtest.h>

#include <map>
#include <set>

#include "base/text.h"
#include "program/builder.h"
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

using Kind = CommandKind;
constexpr Command launch(program::StreamId s, program::OperationId o) {
  return {Kind::launch, s, o, -1};
}
constexpr Command record(program::StreamId s, int e) {
  return {Kind::record, s, -1, e};
}
constexpr Command wait(program::StreamId s, int e) {
  return {Kind::wait, s, -1, e};
}

TEST(Commands, OneStreamNeedsNoEvents) {
  const auto list = make_commands({on(0), on(0, {0})}, 3);
  EXPECT_EQ(list.events, 0);
  EXPECT_EQ(list.commands, (std::vector<Command>{launch(0, 0), launch(0, 1)}));
}

TEST(Commands, AnotherStreamForksWaitsAndJoins) {
  const auto list = make_commands({on(0), on(1, {0}), on(0, {1})}, 2);
  // Events 0 and 1 are of the operations waited for, 2 forks, 3 joins.
  EXPECT_EQ(list.commands,
            (std::vector<Command>{record(0, 2), wait(1, 2), launch(0, 0), record(0, 0), wait(1, 0), launch(1, 1),
                                  record(1, 1), wait(0, 1), launch(0, 2), record(1, 3), wait(0, 3)}));
  EXPECT_EQ(list.events, 4);
}

TEST(Commands, WaitsOnlyForTheLastOfAStreamAndOnlyOnce) {
  const auto list = make_commands({on(0), on(0), on(1, {0, 1}), on(1, {0})}, 2);
  int waits = 0;
  for (const Command& c : list.commands) waits += c.kind == Kind::wait && c.stream == 1;
  EXPECT_EQ(waits, 2);  // the fork, and operation 1
}

TEST(Commands, AGroupStartsAsOneAfterTheWaitsOfAllItsMembers) {
  const auto list = make_commands({on(0), on(1, {0}, 7), on(0), on(1, {2}, 7), on(0, {1})}, 2);
  std::vector<Command> tail;
  bool inside = false;
  std::vector<program::OperationId> members;
  std::set<program::OperationId> launched;
  for (const Command& c : list.commands) {
    if (c.kind == Kind::group_start) {
      inside = true;
      EXPECT_TRUE(launched.contains(0) && launched.contains(2));
    }
    if (c.kind == Kind::group_end) inside = false;
    EXPECT_FALSE(inside && c.kind == Kind::wait);
    if (c.kind == Kind::launch) {
      launched.insert(c.operation);
      if (inside) members.push_back(c.operation);
    }
  }
  EXPECT_EQ(members, (std::vector<program::OperationId>{1, 3}));
}

TEST(Commands, AWaitForHalfAGroupIsRefused) {
  EXPECT_THROW(make_commands({on(1, {}, 7), on(0, {0}), on(1, {}, 7)}, 2), Error);
}

// Every dependency of a real step is enforced by stream order and events alone: a vector clock over the commands says
// what each launch can rely on.
void expect_enforced(const std::vector<program::Operation>& operations, std::size_t streams) {
  const auto list = make_commands(operations, streams);
  using Known = std::vector<std::int64_t>;  // per stream: highest operation known to be complete
  std::vector<Known> at(streams, Known(streams, -1));
  std::map<std::int32_t, Known> recorded;
  std::vector<program::OperationId> order;
  for (const Command& c : list.commands) {
    Known& here = at[c.stream];
    if (c.kind == Kind::record) recorded[c.event] = here;
    if (c.kind == Kind::wait) {
      ASSERT_TRUE(recorded.contains(c.event)) << "a wait for an event that was never recorded";
      for (std::size_t s = 0; s < streams; ++s) here[s] = std::max(here[s], recorded[c.event][s]);
    }
    if (c.kind != Kind::launch) continue;
    const program::Operation& op = operations[c.operation];
    for (const program::OperationId w : op.waits) {
      const std::size_t s = operations[w].stream;
      ASSERT_GE(here[s], w) << "operation " << c.operation << " does not wait for " << w;
    }
    here[c.stream] = c.operation;
    order.push_back(c.operation);
  }
  EXPECT_EQ(order.size(), operations.size());
  for (std::size_t s = 0; s < streams; ++s) {  // joined: stream 0 knows the last of every stream
    std::int64_t last = -1;
    for (std::size_t i = 0; i < operations.size(); ++i) {
      if (operations[i].stream == static_cast<program::StreamId>(s)) last = static_cast<std::int64_t>(i);
    }
    EXPECT_GE(at[0][s], last);
  }
}

TEST(Commands, EnforceEveryDependencyOfRealSteps) {
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
