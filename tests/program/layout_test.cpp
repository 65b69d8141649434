#include "program/layout.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <vector>

#include "program/program.h"
#include "program/span.h"

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

// What a member is told of the others may depend on nothing but their coordinates: sums are added in this order.
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
    }
  }
  Layout swapped{{Axis::tensor, 2}, {Axis::data, 2}};
  swapped.order = {Axis::data, Axis::tensor, Axis::context, Axis::pipeline};
  EXPECT_THAT((Group{"", AxisSet::all(), {}}.members(swapped, {})), ElementsAre(0, 2, 1, 3));
}

TEST(RankOrder, EachRankOfAnExpandedJobHasItsRolesProgram) {
  ProgramSet set;
  set.layout = in_order({Axis::pipeline, Axis::data, Axis::tensor, Axis::context});
  set.role_axes = AxisSet::of({Axis::pipeline});
  for (const char* stream : {"first", "second"}) {
    set.roles.emplace_back();
    set.roles.back().streams = {stream};
  }
  const ProgramSet expanded = expand(set);
  for (int rank = 0; rank < set.layout.ranks(); ++rank) {
    const Coordinates at = set.layout.coordinates(rank);
    EXPECT_EQ(expanded.roles[expanded.role_of(at)].streams, set.roles[set.role_of(at)].streams) << rank;
  }
  ProgramSet other = set;
  other.layout.order = usual_order;
  EXPECT_NE(hash(set), hash(other));
}

TEST(Spans, TensorParallelismStaysInANodeOrLeavesIt) {
  Layout layout{{Axis::tensor, 8}, {Axis::data, 2}};
  std::vector<int> node_of(16, 0);
  std::fill(node_of.begin() + 8, node_of.end(), 1);
  EXPECT_EQ(spans_of(layout, node_of).text(), "tensor 1, data 2");
  layout.order = {Axis::data, Axis::tensor, Axis::context, Axis::pipeline};
  EXPECT_EQ(spans_of(layout, node_of).text(), "tensor 2, data 1");
}

TEST(Spans, TheGroupThatSpansMostCounts) {
  const Layout layout{{Axis::tensor, 2}, {Axis::pipeline, 3}};
  const std::vector<int> node_of{7, 7, 3, 1, 7, 7};  // tensor: 7 7 | 3 1 | 7 7, pipeline: 7 3 7 | 7 1 7
  EXPECT_EQ(spans_of(layout, node_of).text(), "tensor 2, pipeline 2");
  EXPECT_EQ(spans_of(Layout(), node_of).text(), "");
}

TEST(Spans, ACommunicationLeavesItsNodeWhereAnyPartnerStandsOnAnother) {
  const Layout layout{{Axis::tensor, 2}, {Axis::data, 2}};
  const std::vector<Group> groups{{"tensor", AxisSet::of({Axis::tensor}), {}}, {"world", AxisSet::all(), {}}};
  const std::vector<int> node_of{0, 0, 0, 1};
  const auto leaves = [&](int rank, const Action& action) {
    return leaves_node(layout, groups, rank, action, node_of);
  };
  EXPECT_FALSE(leaves(0, AllReduce{0}));
  EXPECT_TRUE(leaves(2, AllReduce{0}));
  EXPECT_TRUE(leaves(0, AllReduce{1}));
  EXPECT_FALSE(leaves(0, Send{{Axis::data, 1}, {}}));
  EXPECT_TRUE(leaves(1, Send{{Axis::data, 1}, {}}));
  EXPECT_FALSE(leaves(3, Gelu{}));
}

}  // namespace
}  // namespace harness::program
