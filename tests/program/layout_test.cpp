#include "program/layout.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <vector>

#include "program/count.h"
#include "program/links.h"
#include "program/program.h"

namespace harness::program {
namespace {

using ::testing::ElementsAre;
using ::testing::SizeIs;

Layout in_order(AxisOrder order) {
  Layout layout{{Axis::tensor, 2}, {Axis::context, 3}, {Axis::data, 4}, {Axis::pipeline, 2}};
  layout.order = order;
  return layout;
}

std::vector<AxisOrder> all_orders() {
  std::vector<AxisOrder> orders;
  AxisOrder order = usual_order;
  do {
    orders.push_back(order);
  } while (std::ranges::next_permutation(order).found);
  return orders;
}

TEST(RankOrder, EveryRankHasItsOwnPlaceInEveryOrder) {
  ASSERT_THAT(all_orders(), SizeIs(24));
  for (const AxisOrder& order : all_orders()) {
    const Layout layout = in_order(order);
    std::set<std::array<int, axis_count>> places;
    for (int rank = 0; rank < layout.ranks(); ++rank) {
      EXPECT_EQ(layout.rank(layout.coordinates(rank)), rank);
      places.insert(layout.coordinates(rank).at);
    }
    EXPECT_THAT(places, SizeIs(48));
    EXPECT_EQ(layout.coordinates(1)[order[0]], 1);
    EXPECT_EQ(layout.coordinates(47 - 1)[order[0]], layout[order[0]] - 2);
  }
}

TEST(RankOrder, TheUsualOneIsMegatrons) {
  const Layout layout = in_order(usual_order);
  for (int rank = 0; rank < layout.ranks(); ++rank) {
    const Coordinates at = layout.coordinates(rank);
    EXPECT_EQ(rank, at[Axis::tensor] + 2 * (at[Axis::context] + 3 * (at[Axis::data] + 4 * at[Axis::pipeline])));
  }
}

// The order of a group's members depends only on their coordinates: sums are added in this order.
TEST(RankOrder, MembersStandInTheOrderOfTheirCoordinates) {
  const Group group{"", AxisSet::of({Axis::tensor, Axis::data}), {}};
  const auto coordinates_of = [&](const Layout& layout, const Coordinates& at) {
    std::vector<std::array<int, axis_count>> coordinates;
    for (const int rank : group.members(layout, at)) coordinates.push_back(layout.coordinates(rank).at);
    return coordinates;
  };
  for (const AxisOrder& order : all_orders()) {
    const Layout layout = in_order(order);
    for (int rank = 0; rank < layout.ranks(); ++rank) {
      const Coordinates at = layout.coordinates(rank);
      EXPECT_EQ(coordinates_of(layout, at), coordinates_of(in_order(usual_order), at));
      EXPECT_EQ(group.first(layout, at).at, coordinates_of(layout, at).front());
    }
  }
  Layout swapped{{Axis::tensor, 2}, {Axis::data, 2}};
  swapped.order = {Axis::data, Axis::tensor, Axis::context, Axis::pipeline};
  EXPECT_THAT((Group{"", AxisSet::all(), {}}.members(swapped, {})), ElementsAre(0, 2, 1, 3));
}

// The ends of a three-stage pipeline: a rank between them is in no such group and begins none.
TEST(RankOrder, TheFirstOfAGroupOfStagesIsOnItsFirstStage) {
  const Layout layout{{Axis::tensor, 2}, {Axis::pipeline, 3}};
  const Group ends{"", AxisSet::of({Axis::pipeline}), {0, 2}}, middle{"", AxisSet::of({Axis::tensor}), {1}};
  std::vector<int> begins;
  for (int rank = 0; rank < layout.ranks(); ++rank) {
    const Coordinates at = layout.coordinates(rank);
    if (ends.contains(at)) {
      EXPECT_EQ(layout.rank(ends.first(layout, at)), ends.members(layout, at).front());
    }
    if (ends.begins_with(layout, at)) begins.push_back(rank);
    EXPECT_EQ(middle.begins_with(layout, at), rank == 2);
  }
  EXPECT_THAT(begins, ElementsAre(0, 1));
}

TEST(ReplicasOfANode, AreThoseThatFollowEachOtherOnOne) {
  Layout layout{{Axis::tensor, 2}, {Axis::data, 4}, {Axis::pipeline, 2}};
  const auto of = [&](int ranks_of_node) {
    std::vector<int> node_of;
    for (int rank = 0; rank < layout.ranks(); ++rank) node_of.push_back(rank / ranks_of_node);
    return replicas_of_node(layout, node_of);
  };
  EXPECT_EQ(of(16), 4);
  EXPECT_EQ(of(8), 4);
  EXPECT_EQ(of(4), 2);
  EXPECT_EQ(of(2), 1);
  EXPECT_EQ(of(1), 1);
  EXPECT_EQ(of(6), Layout::uneven);  // 3 replicas on the first node, 1 on the second
  layout.order = {Axis::tensor, Axis::context, Axis::pipeline, Axis::data};
  EXPECT_EQ(of(8), 2);
  layout.order = usual_order;
  std::vector<int> in_turn;  // mpirun --map-by node
  for (int rank = 0; rank < layout.ranks(); ++rank) in_turn.push_back(rank / 2 % 2);
  EXPECT_EQ(replicas_of_node(layout, in_turn), 1);
  // The second replica is on another node in a single data group only.
  const std::vector<int> odd{0, 0, 0, 0, 1, 1, 1, 1, 2, 2, 2, 3, 3, 3, 3, 3};
  EXPECT_EQ(replicas_of_node(layout, odd), Layout::uneven);
}

TEST(ReplicasOfANode, TalkAmongThemselvesOrToTheirLikes) {
  Layout layout{{Axis::tensor, 2}, {Axis::data, 6}};
  layout.replicas_of_node = 3;
  const Group of_node{"", AxisSet::of({Axis::data}), {}, Replicas::of_node},
      across{"", AxisSet::of({Axis::data}), {}, Replicas::across_nodes};
  EXPECT_EQ(of_node.size(layout), 3);
  EXPECT_EQ(across.size(layout), 2);
  const auto at = [&](int rank) { return layout.coordinates(rank); };
  EXPECT_THAT(of_node.members(layout, at(3)), ElementsAre(1, 3, 5));
  EXPECT_THAT(of_node.members(layout, at(10)), ElementsAre(6, 8, 10));
  EXPECT_THAT(across.members(layout, at(3)), ElementsAre(3, 9));
  EXPECT_THAT(across.members(layout, at(10)), ElementsAre(4, 10));
  for (const Group& group : {of_node, across}) {
    std::vector<int> all;
    for (int rank = 0; rank < layout.ranks(); ++rank) {
      if (!group.begins_with(layout, at(rank))) continue;
      const std::vector<int> members = group.members(layout, at(rank));
      EXPECT_EQ(members.front(), rank);
      all.insert(all.end(), members.begin(), members.end());
    }
    EXPECT_THAT(std::set<int>(all.begin(), all.end()), SizeIs(12));
    EXPECT_THAT(all, SizeIs(12));
  }
}

TEST(Spans, AreThoseOfTheGroupThatSpansMost) {
  const auto text = [](const Layout& layout, const std::vector<int>& node_of, bool tied = false) {
    std::vector<Coordinates> at;
    for (int rank = 0; rank < layout.ranks(); ++rank) at.push_back(layout.coordinates(rank));
    return spans_of(at, node_of, tied).text();
  };
  Layout wide{{Axis::tensor, 8}, {Axis::data, 2}};
  std::vector<int> two_nodes(16, 0);
  std::fill(two_nodes.begin() + 8, two_nodes.end(), 1);
  EXPECT_EQ(text(wide, two_nodes), "tensor 1, data 2");
  wide.order = {Axis::data, Axis::tensor, Axis::context, Axis::pipeline};
  EXPECT_EQ(text(wide, two_nodes), "tensor 2, data 1");
  // tensor: 7 7 | 3 1 | 7 7, pipeline: 7 3 7 | 7 1 7
  EXPECT_EQ(text({{Axis::tensor, 2}, {Axis::pipeline, 3}}, {7, 7, 3, 1, 7, 7}), "tensor 2, pipeline 2");
  EXPECT_EQ(text({}, {7}), "");
  // The ends of a pipeline that share an embedding table form a group.
  const Layout stages{{Axis::data, 2}, {Axis::pipeline, 3}};
  EXPECT_EQ(text(stages, {0, 0, 1, 1, 0, 2}), "pipeline 3, data 2");
  EXPECT_EQ(text(stages, {0, 0, 1, 1, 0, 2}, true), "pipeline 3, data 2, embedding 2");
  EXPECT_EQ(text(stages, {0, 0, 1, 1, 0, 0}, true), "pipeline 2, data 1, embedding 1");
  EXPECT_EQ(text({{Axis::data, 2}}, {0, 1}, true), "data 2");  // a single stage has no other end
}

// Bytes that a rank sends, counted on the wire rather than by the sizes of buffers.

// One message among n ranks, whose whole buffer has 4 * count bytes.
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
  for (const auto& [key, traffic] : count(set, set.roles[0]).traffic) bytes += traffic.sent_bytes;
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
