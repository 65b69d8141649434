#include "machine/topology.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace harness::machine {
namespace {

TEST(Topology, NodesFollowEachOtherAndTheLastMayHaveFewerRanks) {
  const Topology five = Topology::node_by_node(5, 2);
  EXPECT_THAT(five.node_of, testing::ElementsAre(0, 0, 1, 1, 2));
  EXPECT_EQ(five.nodes(), 3);
  EXPECT_TRUE(five.is_known());
  EXPECT_FALSE(Topology().is_known());
  EXPECT_EQ(Topology().nodes(), 0);
}

}  // namespace
}  // namespace harness::machine
