// Bytes that a rank sends, counted by what crosses a wire and not by the sizes of buffers.
#include <gtest/gtest.h>

#include "program/count.h"
#include "program/links.h"

namespace harness::program {
namespace {

// One message over n ranks, whose whole buffer has 4 * count bytes.
ProgramSet over(int n, std::int64_t count, const std::vector<Action>& actions) {
  ProgramSet set;
  set.layout[Axis::data] = n;
  set.groups = {{"data", AxisSet::of({Axis::data}), {}}};
  Program& role = set.roles.emplace_back();
  role.streams = {"data"};
  role.buffers = {{"whole", DType::f32, count, BufferKind::transient},
                  {"part", DType::f32, count / n, BufferKind::transient}};
  for (const Action& action : actions)
    role.step.push_back({action, 0, {}, -1, {"message", Phase::forward, -1, -1, false}});
  return set;
}

double sent(const ProgramSet& set) {
  double bytes = 0;
  for (const auto& [key, traffic] : count(set, set.roles[0], set.roles[0].step).traffic) bytes += traffic.sent_bytes;
  return bytes;
}

TEST(SentBytes, AReduceScatterAndAnAllGatherMoveWhatTheAllReduceMoves) {
  for (const int n : {1, 2, 3, 8, 64}) {
    const std::int64_t elements = 64 * 3 * n;
    const View whole{0, 0, elements}, part{1, 0, elements / n};
    const double bytes = 4.0 * static_cast<double>(elements);
    const double all_reduce = sent(over(n, elements, {AllReduce{0, whole}}));
    EXPECT_DOUBLE_EQ(all_reduce, 2 * bytes * (n - 1) / n) << n;
    EXPECT_DOUBLE_EQ(sent(over(n, elements, {ReduceScatter{0, whole, part}, AllGather{0, part, whole}})), all_reduce);
    EXPECT_DOUBLE_EQ(sent(over(n, elements, {AllToAll{0, whole, whole}})), bytes * (n - 1) / n);
    EXPECT_DOUBLE_EQ(sent(over(n, elements, {Send{{Axis::data, 1}, whole}, Receive{{Axis::data, -1}, whole}})), bytes);
  }
}

}  // namespace
}  // namespace harness::program
