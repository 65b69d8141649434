#include "sim/rank_classes.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "support/errors.h"

namespace harness::sim {
namespace {

using ::testing::DoubleEq;
using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::SizeIs;

// Two nodes of two ranks: each rank's share of its node's 100 GB/s is 50 GB/s.
Network two_nodes() {
  return {.rank_bytes_per_s = 300e9, .node_bytes_per_s = 100e9, .switches_reduce = false, .node_of = {0, 0, 1, 1}};
}

config::Hardware hopper() {
  return config::hardware_named("h100-sxm");
}

std::vector<double> network_left(const config::Faults& faults) {
  return condition_of(faults, hopper(), two_nodes(), {}).network;
}

TEST(Faults, NothingIsLeftOutWhereNothingIsWrong) {
  const Condition condition = condition_of({}, hopper(), two_nodes(), {});
  EXPECT_TRUE(condition.clock.empty() && condition.network.empty());
  EXPECT_EQ(condition.clock_of(3), 1);
  EXPECT_EQ(condition.network_of(3), 1);
}

TEST(Faults, TouchTheRanksTheyAreOn) {
  config::Faults faults;
  faults.slow_gpus = {{.rank = 3, .speed = 0.8}};
  EXPECT_THAT(condition_of(faults, hopper(), two_nodes(), {}).clock, ElementsAre(1, 1, 1, 0.8));
  EXPECT_THAT(network_left(faults), SizeIs(0));
  faults.slow_links = {{.node = 1, .share = 0.5}};
  EXPECT_THAT(network_left(faults), ElementsAre(1, 1, 0.5, 0.5));
}

TEST(Faults, TheNarrowestPlaceDecides) {
  config::Faults faults;
  faults.acs_on = true;
  EXPECT_THAT(network_left(faults), Each(0.56));
  faults.no_gpudirect = true;  // no traffic between GPU and adapter, so ACS does not matter
  EXPECT_THAT(network_left(faults), Each(300.0 / 720));
  faults.slow_links = {{.node = 0, .share = 0.5}};
  EXPECT_THAT(network_left(faults), Each(300.0 / 720));
  faults.slow_links[0].share = 0.25;
  EXPECT_THAT(network_left(faults), ElementsAre(0.25, 0.25, 300.0 / 720, 300.0 / 720));
  faults.socket_bytes_per_s = 4e9;
  EXPECT_THAT(network_left(faults), Each(0.04));
}

// Whatever share of its rate the healthy network reaches, 4 GB/s arrive over TCP.
TEST(Faults, SocketsHaveTheRateThatIsStated) {
  config::Faults faults;
  faults.socket_bytes_per_s = 4e9;
  config::Calibration calibration;
  calibration.network_share = 0.8;
  EXPECT_THAT(condition_of(faults, hopper(), two_nodes(), calibration).network, Each(DoubleEq(0.05)));
}

// PCIe generation 5 has 63 GB/s: half of it is 63 % of 50 GB/s, and the whole is no limit.
TEST(Faults, APcieLinkLimitsWhatItsGpuSends) {
  config::Faults faults;
  faults.narrow_pcie = {{.rank = 2, .share = 0.5}};
  EXPECT_THAT(network_left(faults), ElementsAre(1, 1, 0.63, 1));
  faults.narrow_pcie = {{.node = 0, .share = 1}};
  EXPECT_THAT(network_left(faults), Each(1));
  const std::string unknown = test::error_of([&] { condition_of(faults, {}, two_nodes(), {}); });
  EXPECT_THAT(unknown, HasSubstr("no compute_capability"));
}

TEST(Faults, AreOnWhatTheJobHas) {
  const auto complaint = [](const config::Faults& faults) {
    return test::error_of([&] { condition_of(faults, hopper(), two_nodes(), {}); });
  };
  config::Faults gpu, link, pcie;
  gpu.slow_gpus = {{4, 0.8}};
  link.slow_links = {{2, 0.5}};
  pcie.narrow_pcie = {{9, -1, 0.5}};
  EXPECT_THAT(complaint(gpu), HasSubstr("slow_gpu is on rank 4, but the job has 4 ranks"));
  EXPECT_THAT(complaint(link), HasSubstr("slow_link is on node 2, but the job has 2 nodes"));
  EXPECT_THAT(complaint(pcie), HasSubstr("pcie_downgraded is on rank 9"));
}

TEST(Faults, RanksDealtOneByOneHaveTheirNeighboursElsewhere) {
  config::Faults faults;
  EXPECT_THAT(places(faults, {0, 0, 0, 1, 1, 1}), ElementsAre(0, 0, 0, 1, 1, 1));
  faults.tensor_across_nodes = true;
  EXPECT_THAT(places(faults, {0, 0, 0, 1, 1, 1}), ElementsAre(0, 1, 0, 1, 0, 1));
  EXPECT_THAT(places(faults, {0, 0, 0, 1}), ElementsAre(0, 1, 0, 0));
}

}  // namespace
}  // namespace harness::sim
