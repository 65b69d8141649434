#include "sim/link_time.h"
#include "sim/trust.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "support/errors.h"

namespace harness::sim {
namespace {

using program::Collective;
using ::testing::HasSubstr;

constexpr double mib = 1 << 20;

NcclGroup a100s(int ranks) {
  return {.ranks = ranks, .nodes = 1, .within_bytes_per_s = 300e9, .compute_capability = 80, .nvswitch = true};
}
NcclGroup h100s(int ranks, int nodes) {
  return {.ranks = ranks,
          .nodes = nodes,
          .within_bytes_per_s = 450e9,
          .between_bytes_per_s = nodes > 1 ? 400e9 : 0,
          .rails = 8,
          .compute_capability = 90,
          .nvswitch = true};
}

double bus(Collective kind, double bytes, NcclAlgorithm a, const NcclGroup& group) {
  const double passes = kind == Collective::all_reduce ? 2 : 1;
  return passes * (group.ranks - 1) / group.ranks * bytes / nccl_seconds(kind, bytes, a, NcclProtocol::simple, group);
}

// By hand from the tables of NCCL's src/graph/tuning.cc: 8.4 us and 14 steps of 3.4 us; 12 channels of 20 GB/s.
TEST(NcclSeconds, OfARingAreItsStepsAndItsChannels) {
  const double bytes = 100e6;
  EXPECT_NEAR(nccl_seconds(Collective::all_reduce, bytes, NcclAlgorithm::ring, NcclProtocol::simple, a100s(8)),
              (8.4 + 14 * 3.4) * 1e-6 + bytes / (240e9 * 8 / 14), 1e-12);
  EXPECT_NEAR(nccl_seconds(Collective::all_gather, bytes, NcclAlgorithm::ring, NcclProtocol::ll128, a100s(8)),
              (14 + 7 * 1.9) * 1e-6 + bytes / (0.92 * 240e9 * 8 / 7), 1e-12);
  // 16 nodes: 254 steps, 30 of them over the network, 1.4 times as slow for large messages; 8 cards of 48 GB/s.
  const double steps_us = 8.4 + (254 - 30) * 3.4 + 30 * 14;
  EXPECT_NEAR(nccl_seconds(Collective::all_reduce, 1e9, NcclAlgorithm::ring, NcclProtocol::simple, h100s(128, 16)),
              1.4 * steps_us * 1e-6 + 1e9 / (360e9 * 128 / 254), 1e-9);
}

NcclGroup with_sharp(NcclGroup group) {
  group.network_reduces = true;
  return group;
}

// By hand: 2 (7 steps of 2.8 us) and 30 us of the network; a chain has what NVLink carries, 18 x 20.6 GB/s, in both
// directions together, and its direct form 85 % of it on Hopper.
TEST(NcclSeconds, OfSwitchesThatAddUpBetweenNodesAreOneCrossing) {
  const NcclGroup group = with_sharp(h100s(128, 16));
  const double bytes = 1e9, links = 450e9 * 20.6 / 25;
  EXPECT_NEAR(nccl_seconds(Collective::all_reduce, bytes, NcclAlgorithm::collnet_chain, NcclProtocol::simple, group),
              (2 * 7 * 2.8 + 30) * 1e-6 + bytes / (links / 2), 1e-9);
  EXPECT_NEAR(nccl_seconds(Collective::all_reduce, bytes, NcclAlgorithm::collnet_direct, NcclProtocol::simple, group),
              (2 * (3.7 + 7 * 0.4) + 31) * 1e-6 + bytes / (0.85 * links / 2), 1e-9);
  NcclGroup one_each = with_sharp(h100s(16, 16));
  one_each.between_bytes_per_s = 50e9;
  one_each.rails = 1;
  EXPECT_NEAR(nccl_seconds(Collective::all_reduce, bytes, NcclAlgorithm::collnet_chain, NcclProtocol::simple, one_each),
              14e-6 + bytes / 48e9, 1e-9);
}

// Measured by NVIDIA on 8 H100 of one node: 480 GB/s with the switches' sums; a ring has what the links carry.
TEST(NcclSeconds, SwitchesThatAddUpBeatARingOfEightButNotOfFour) {
  EXPECT_NEAR(bus(Collective::all_reduce, 8e9, NcclAlgorithm::nvls, h100s(8, 1)), 476e9, 5e9);
  EXPECT_NEAR(bus(Collective::all_reduce, 8e9, NcclAlgorithm::ring, h100s(8, 1)), 360e9, 5e9);
  EXPECT_LT(bus(Collective::all_reduce, 8e9, NcclAlgorithm::nvls, h100s(4, 1)),
            bus(Collective::all_reduce, 8e9, NcclAlgorithm::ring, h100s(4, 1)));
}

TEST(NcclSeconds, AreNoneWhereAnAlgorithmDoesNotDoIt) {
  const auto none = [](Collective kind, NcclAlgorithm a, const NcclGroup& group) {
    return nccl_seconds(kind, mib, a, NcclProtocol::simple, group) == 0;
  };
  EXPECT_TRUE(none(Collective::all_gather, NcclAlgorithm::tree, a100s(8)));
  EXPECT_TRUE(none(Collective::all_reduce, NcclAlgorithm::nvls, a100s(8)));  // came with Hopper
  EXPECT_TRUE(none(Collective::all_reduce, NcclAlgorithm::collnet_chain, h100s(16, 2)));
  EXPECT_FALSE(none(Collective::all_reduce, NcclAlgorithm::collnet_chain, with_sharp(h100s(16, 2))));
  EXPECT_TRUE(none(Collective::all_gather, NcclAlgorithm::collnet_direct, with_sharp(h100s(16, 2))));
  EXPECT_TRUE(none(Collective::all_reduce, NcclAlgorithm::nvls_tree, h100s(8, 1)));
  EXPECT_FALSE(none(Collective::all_reduce, NcclAlgorithm::nvls_tree, h100s(16, 2)));
  EXPECT_TRUE(none(Collective::all_gather, NcclAlgorithm::pat, h100s(16, 2)));  // one rank on a node
  EXPECT_FALSE(none(Collective::all_gather, NcclAlgorithm::pat, h100s(16, 16)));
  EXPECT_EQ(nccl_seconds(Collective::all_reduce, mib, NcclAlgorithm::nvls, NcclProtocol::ll, h100s(8, 1)), 0);
}

NcclEffect effect(std::map<std::string, std::string> nccl, double bytes, const NcclGroup& group,
                  Collective kind = Collective::all_reduce) {
  config::Settings s;
  s.nccl = std::move(nccl);
  return NcclEffects(kind, group, s).at(bytes);
}

TEST(NcclEffect, IsNoneWhereNothingIsForcedOrWhatNcclChoosesAnyway) {
  EXPECT_EQ(effect({}, mib, h100s(8, 1)).slower, 1);
  EXPECT_EQ(effect({{"nccl_algo", "AllReduce:NVLS"}}, 1000 * mib, h100s(8, 1)).slower, 1);
  EXPECT_EQ(effect({{"nccl_algo", "AllReduce:Tree"}}, mib, h100s(8, 1), Collective::all_gather).slower, 1);
  EXPECT_EQ(effect({{"nccl_nvls", "2"}}, mib, h100s(8, 1)).slower, 1);
}

TEST(NcclEffect, OfAForcedChoiceIsThatOfNcclsTables) {
  const double large = 1000 * mib, small = mib / 16;
  EXPECT_NEAR(effect({{"nccl_algo", "Ring"}}, large, h100s(8, 1)).slower, 476.0 / 360, 0.01);
  EXPECT_EQ(effect({{"nccl_nvls", "0"}}, large, h100s(8, 1)).slower,
            effect({{"nccl_algo", "Tree,Ring"}}, large, h100s(8, 1)).slower);
  // LL halves a ring's bandwidth and spares it latency.
  EXPECT_GT(effect({{"nccl_proto", "LL"}}, large, a100s(8)).slower, 2);
  EXPECT_GT(effect({{"nccl_proto", "Simple"}}, small, a100s(8)).slower, 1.5);
  EXPECT_LT(effect({{"nccl_proto", "LL"}}, small, a100s(8)).slower, 1.01);
}

// CollNet is off unless it is turned on, and needs switches that add up.
TEST(NcclEffect, OfCollNetIsThatOfSwitchesThatAddUp) {
  const double large = 1000 * mib;
  NcclGroup group = with_sharp(a100s(64));
  group.nodes = 8;
  group.between_bytes_per_s = 200e9;
  group.rails = 8;
  const double own = effect({}, large, group).slower;
  EXPECT_EQ(own, 1);
  const auto seconds = [&](NcclAlgorithm a) {
    return nccl_seconds(Collective::all_reduce, large, a, NcclProtocol::simple, group);
  };
  // A card has 192 GB/s of the node's, and NVLink 240, which both directions share.
  EXPECT_NEAR(seconds(NcclAlgorithm::collnet_chain), (2 * 7 * 2.8 + 30) * 1e-6 + large / 120e9, 1e-9);
  EXPECT_DOUBLE_EQ(effect({{"nccl_algo", "AllReduce:CollNetChain"}, {"nccl_collnet", "true"}}, large, group).slower,
                   seconds(NcclAlgorithm::collnet_chain) / seconds(NcclAlgorithm::ring));
  EXPECT_LT(effect({{"nccl_collnet", "true"}}, large, group).slower, own);
  EXPECT_EQ(effect({{"nccl_collnet", "true"}}, large, group, Collective::all_gather).slower,
            effect({}, large, group, Collective::all_gather).slower);
  const auto refused = [&](std::map<std::string, std::string> nccl, const NcclGroup& of) {
    return test::error_of([&] { effect(std::move(nccl), large, of); });
  };
  EXPECT_THAT(refused({{"nccl_algo", "AllReduce:CollNetChain"}}, group), HasSubstr("needs nccl_collnet: true"));
  group.network_reduces = false;
  EXPECT_THAT(refused({{"nccl_collnet", "true"}}, group), HasSubstr("write `sharp: true`"));
  EXPECT_EQ(effect({{"nccl_algo", "Ring"}, {"nccl_collnet", "true"}}, large, group).slower, 1);
}

// A tree's latency grows with the logarithm of the nodes, a ring's with their number.
TEST(NcclEffect, BetweenNodesIsAgainstNcclsOwnChoice) {
  EXPECT_EQ(effect({}, mib, h100s(512, 64)).slower, 1);
  EXPECT_GT(effect({{"nccl_algo", "AllReduce:Ring"}}, mib, h100s(512, 64)).slower, 3);
  NcclGroup old = a100s(64);
  old.nodes = 8;
  old.between_bytes_per_s = 200e9;
  old.rails = 8;
  EXPECT_EQ(effect({{"nccl_algo", "Ring"}}, 1000 * mib, old).slower, 1);  // large messages go round
  // Measured by AWS on two p5: 438 to 444 GB/s, which no ring reaches.
  EXPECT_NEAR(effect({{"nccl_algo", "AllReduce:Ring"}}, 2000 * mib, h100s(16, 2)).slower, 450.0 / 360, 0.07);
}

TEST(NcclGroup, HasWhatAFaultLeavesOfTheNetwork) {
  Network network{.rank_bytes_per_s = 450e9, .node_bytes_per_s = 400e9, .node_of = {}};
  Spread spread{16, 2, 8, 1};
  const double whole = nccl_group(spread, network).between_bytes_per_s;
  EXPECT_GT(whole, 0);
  spread.network = 0.25;
  EXPECT_DOUBLE_EQ(nccl_group(spread, network).between_bytes_per_s, whole / 4);
}

TEST(NcclEffect, OfThreadBlocksIsBandwidthAndMultiprocessors) {
  const double large = 1000 * mib;
  const NcclEffect few = effect({{"nccl_max_ctas", "2"}}, large, a100s(8));
  EXPECT_NEAR(few.slower, 240.0 / (2 * 24), 0.1);
  EXPECT_NEAR(few.more_blocks, 2.0 / 24, 1e-9);
  const NcclEffect many = effect({{"nccl_min_ctas", "48"}}, large, a100s(8));
  EXPECT_EQ(many.slower, 1);
  EXPECT_NEAR(many.more_blocks, 2, 1e-9);
}

TEST(NcclEffect, IsAnErrorOfNcclWhereNothingIsLeft) {
  EXPECT_THROW(effect({{"nccl_algo", "Tree"}}, mib, a100s(8), Collective::all_gather), NotPredicted);
  EXPECT_THAT(test::error_of([] {
                effect({{"nccl_algo", "AllReduce:NVLSTree"}}, mib, h100s(8, 1));
              }),
              HasSubstr("NVLSTree"));
}

TEST(Known, IsWhatTheProgramShowsAndWhatNcclsModelHas) {
  config::Settings baseline, changed;
  changed.micro_batch_size = 4;
  changed.nccl["nccl_algo"] = "Ring";
  EXPECT_EQ(unknown_change(baseline, changed), "");
  changed.nccl["nccl_buffsize"] = "8 MiB";
  EXPECT_EQ(unknown_change(baseline, changed), "nccl_buffsize");
  EXPECT_EQ(unknown_change(changed, changed), "");
  EXPECT_THAT(disregarded(changed), ::testing::ElementsAre("nccl_buffsize"));
  config::Settings environment;
  environment.env["NCCL_IB_TIMEOUT"] = "22";
  EXPECT_EQ(unknown_change(baseline, environment), "env");
  // A variable that is renamed would become known.
  config::Settings all;
  all.env = environment.env;
  all.attention_engine = 1;
  all.cuda_graph = false;
  all.threads = 2;
  all.allreduce_algorithm = config::AllReduceAlgorithm::halving_doubling;
  all.data_file = "tokens.bin";
  EXPECT_THAT(disregarded(all), ::testing::UnorderedElementsAre("attention_engine", "cuda_graph", "threads",
                                                                "allreduce_algorithm", "env", "data_file"));
}

}  // namespace
}  // namespace harness::sim
