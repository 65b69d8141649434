// The least time of an all-reduce, against numbers made by hand.
#include "doctor/bound.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "node_fixture.h"
#include "sim/collective_time.h"
#include "support/errors.h"

namespace harness::doctor {
namespace {

using ::testing::HasSubstr;

double seconds_of(const Bound& bound, const std::string& what) {
  for (const LeastTime& limit : bound.limits) {
    if (limit.what == what) return limit.seconds;
  }
  return 0;
}

// 14 GB in 2 ms on 16 machines with 8 x 400 Gbit/s is often asked for.
TEST(Bound, FourteenGigabytesOnSixteenNodes) {
  const Fabric fabric = fabric_of(config::hardware_named("h100-sxm"), 128);
  EXPECT_EQ(fabric.nodes(), 16);
  const Bound bound = bound_of_all_reduce(14e9, fabric);
  EXPECT_NEAR(seconds_of(bound, "network"), 2 * 15.0 / 16 * 14e9 / 400e9, 1e-9);  // 65.6 ms
  EXPECT_NEAR(seconds_of(bound, "memory of a GPU"), 2 * 14e9 / 3.35e12, 1e-9);
  EXPECT_NEAR(bound.seconds, 65.625e-3, 1e-9);
  EXPECT_NEAR(bound.with_sharp_s, 35e-3, 1e-9);
  EXPECT_GE(bound.ring_s, bound.seconds);  // what is expected is no less than what is possible
  EXPECT_LT(bound.ring_s, 1.2 * bound.seconds);
}

// Doctor expects what a prediction expects; nothing is faster than its limit, and no ring than its links.
TEST(Bound, WhatIsExpectedIsWhatSimPredicts) {
  for (const char* machine : {"dgx-a100", "dgx-h100", "hgx-b200", "p4d", "p5"}) {
    const config::Hardware hardware = config::hardware_named(machine);
    const config::Calibration calibration = config::calibration_named("harness");
    for (const int ranks : {2, 4, 8, 16, 128, 1024}) {
      const Fabric fabric = fabric_of(hardware, ranks);
      std::vector<int> node_of;
      for (int rank = 0; rank < ranks; ++rank) node_of.push_back(rank / 8);
      const sim::Network network = sim::network_of(hardware, {}, node_of);
      const sim::Spread spread{ranks, fabric.nodes(), std::min(ranks, 8), 1};
      const sim::CollectiveTime sim(program::Collective::all_reduce, spread, network, calibration, {});
      for (const double bytes : {8.0, 65536.0, 1e6, 1e9, 14e9}) {
        SCOPED_TRACE(fmt::format("{}, {} ranks, {} B", machine, ranks, bytes));
        const Bound bound = bound_of_all_reduce(bytes, fabric);
        EXPECT_DOUBLE_EQ(bound.predicted_s, sim.seconds(bytes));
        EXPECT_GE(bound.predicted_s, bound.with_sharp_s);
        EXPECT_GE(bound.ring_s, bound.seconds);
        EXPECT_GE(bound.with_sharp_s, 0.6e-6);  // a step
        EXPECT_GE(bound.ring_s, 2 * (ranks - 1.0) / ranks * bytes / hardware.nvlink_bytes_per_s);
      }
    }
  }
}

TEST(Bound, OnOneMachineItIsNvlinks) {
  const Bound of_h100 = bound_of_all_reduce(14e9, fabric_of(config::hardware_named("h100-sxm"), 0));
  EXPECT_NEAR(of_h100.seconds, 14e9 / 450e9, 1e-9);  // its switches add up: each byte once
  EXPECT_EQ(of_h100.with_sharp_s, of_h100.seconds);
  const Bound of_a100 = bound_of_all_reduce(14e9, fabric_of(config::hardware_named("a100-sxm-80gb"), 8));
  EXPECT_NEAR(of_a100.seconds, 2 * 7.0 / 8 * 14e9 / 300e9, 1e-9);
  EXPECT_GT(of_a100.ring_s, of_a100.seconds);
}

TEST(Bound, OfWhatTheNodesHave) {
  std::vector<Node> nodes;
  test::NodeTree tree("dgx01");
  test::add_dgx(tree);
  tree.write("sys/class/infiniband/mlx5_0/ports/1/rate", "100 Gb/sec (4X EDR)");  // for storage
  const Node node = tree.node(8);
  const Fabric fabric = fabric_of({node, node}, 0);
  EXPECT_EQ(fabric.ranks, 16);
  EXPECT_EQ(fabric.ranks_per_node, 8);
  EXPECT_DOUBLE_EQ(fabric.links.node_bytes_per_s, 7 * 50e9);
  EXPECT_DOUBLE_EQ(fabric.links.rank_bytes_per_s, 450e9);                    // by the name of the GPU
  EXPECT_NEAR(bound_of_all_reduce(1e9, fabric).seconds, 1e9 / 350e9, 1e-9);  // 2 nodes: 2 (m - 1) / m is 1
  EXPECT_EQ(fabric_of({node, node}, 64).nodes(), 8);
}

TEST(Bound, SaysWhatItDoesNotKnow) {
  test::NodeTree tree("laptop");
  const Node node = tree.node(2);
  EXPECT_THAT(test::error_of([&] { bound_of_all_reduce(1e9, fabric_of({node}, 0)); }), HasSubstr("nothing is known"));
  EXPECT_THAT(test::error_of([&] {
                bound_of_all_reduce(1e9, fabric_of({node, node}, 0));
              }),
              HasSubstr("no active RDMA port"));
  EXPECT_THAT(test::error_of([] { fabric_of(config::hardware_named("l40s"), 0); }), HasSubstr("how many GPUs"));
  EXPECT_THAT(test::error_of([] { config::hardware_named("h1000"); }), HasSubstr("h1000"));
}

}  // namespace
}  // namespace harness::doctor
