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

// A communicator, and the links of its nodes of up to eight GPUs with a network card each.
struct Communicator {
  Spread spread;
  Network network;
};
Communicator on_nodes(int ranks, int nodes, double rank_bytes_per_s, double node_bytes_per_s, int capability) {
  return {{ranks, nodes, ranks / nodes, 1},
          {.rank_bytes_per_s = rank_bytes_per_s,
           .node_bytes_per_s = node_bytes_per_s,
           .node_of = {},
           .ranks_of_node = 8,
           .nics_of_node = 8,
           .compute_capability = capability,
           .nvswitch = true}};
}
Communicator a100s(int ranks, int nodes = 1) {
  return on_nodes(ranks, nodes, 300e9, 200e9, 80);
}
Communicator h100s(int ranks, int nodes) {
  return on_nodes(ranks, nodes, 450e9, 400e9, 90);
}
Communicator with_sharp(Communicator communicator) {
  communicator.network.network_reduces = true;
  return communicator;
}

NcclEffect effect(std::map<std::string, std::string> nccl, double bytes, const Communicator& of,
                  Collective kind = Collective::all_reduce) {
  config::Settings s;
  s.nccl = std::move(nccl);
  const NcclEffects effects = nccl_effects(kind, of.spread, of.network, s);
  return effects ? effects(bytes) : NcclEffect{};
}
// Returns the time of one choice relative to another.
double ratio(const char* algorithm, const char* protocol, const char* to_algorithm, const char* to_protocol,
             double bytes, const Communicator& of, Collective kind = Collective::all_reduce) {
  const auto slower = [&](const char* a, const char* p) {
    return effect(
               {{"nccl_algo", a}, {"nccl_proto", p}, {"nccl_collnet", of.network.network_reduces ? "true" : "default"}},
               bytes, of, kind)
        .slower;
  };
  return slower(algorithm, protocol) / slower(to_algorithm, to_protocol);
}

// By hand from the tables in NCCL's src/graph/tuning.cc: Simple takes 8.4 us and 14 steps of 3.4 us, on 12 channels of
// 20 GB/s; LL128 takes 14 us and 14 steps of 1.9 us, at 92 % of that bandwidth.
TEST(NcclEffect, OfARingAreItsStepsAndItsChannels) {
  const double bytes = 100e6, simple = (8.4 + 14 * 3.4) * 1e-6 + bytes / (240e9 * 8 / 14);
  const double ll128 = (14 + 14 * 1.9) * 1e-6 + bytes / (0.92 * 240e9 * 8 / 14);
  EXPECT_NEAR(ratio("Ring", "Simple", "Ring", "LL128", bytes, a100s(8)), simple / ll128, 1e-9);
}

// By hand. A ring on 16 nodes has 254 steps, 30 of them over the network, with 1.4 times the latency for large
// messages; 8 cards of 48 GB/s, and NVLink's 360 GB/s. CollNet takes 2 (7 steps of 2.8 us) and 30 us of the network; a
// chain has NVLink's 18 x 20.6 GB/s for both directions together, and the direct form 85 % of it on Hopper.
TEST(NcclEffect, OfSwitchesThatAddUpBetweenNodesIsOneCrossing) {
  const Communicator group = with_sharp(h100s(128, 16));
  const double bytes = 1e9, links = 450e9 * 20.6 / 25, chain = (2 * 7 * 2.8 + 30) * 1e-6 + bytes / (links / 2);
  const double ring = 1.4 * (8.4 + (254 - 30) * 3.4 + 30 * 14) * 1e-6 + bytes / (360e9 * 128 / 254);
  const double direct = (2 * (3.7 + 7 * 0.4) + 31) * 1e-6 + bytes / (0.85 * links / 2);
  const auto to_ring = [&](const char* algorithm) {
    return ratio(algorithm, "Simple", "Ring", "Simple", bytes, group);
  };
  EXPECT_NEAR(to_ring("AllReduce:CollNetChain"), chain / ring, 1e-9);
  EXPECT_NEAR(to_ring("AllReduce:CollNetDirect"), direct / ring, 1e-9);
  // One rank on each node: only the network counts, 14 us and 48 GB/s; a ring has 30 steps of 14 us.
  Communicator one_each = with_sharp(h100s(16, 16));
  one_each.network.ranks_of_node = one_each.network.nics_of_node = 1;
  one_each.network.node_bytes_per_s = 50e9;
  const double through = 14e-6 + bytes / 48e9, around = 1.4 * (8.4 + 30 * 14) * 1e-6 + bytes / (48e9 * 16 / 30);
  EXPECT_NEAR(ratio("AllReduce:CollNetChain", "Simple", "Ring", "Simple", bytes, one_each), through / around, 1e-9);
}

// NVIDIA measured 480 GB/s with NVLS on 8 H100 of one node; a ring has the 360 GB/s of the links.
TEST(NcclEffect, OfSwitchesThatAddUpBeatsARingOfEightButNotOfFour) {
  const auto to_ring = [](int ranks) {
    return ratio("AllReduce:NVLS", "Simple", "Ring", "Simple", 8e9, h100s(ranks, 1));
  };
  EXPECT_NEAR(to_ring(8), 360.0 / 476, 0.01);
  EXPECT_GT(to_ring(4), 1);
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
  // LL halves a ring's bandwidth and lowers its latency.
  EXPECT_GT(effect({{"nccl_proto", "LL"}}, large, a100s(8)).slower, 2);
  EXPECT_GT(effect({{"nccl_proto", "Simple"}}, small, a100s(8)).slower, 1.5);
  EXPECT_LT(effect({{"nccl_proto", "LL"}}, small, a100s(8)).slower, 1.01);
}

// CollNet is off by default, and needs switches that reduce.
TEST(NcclEffect, OfCollNetIsThatOfSwitchesThatAddUp) {
  const double large = 1000 * mib;
  Communicator group = with_sharp(a100s(64, 8));
  EXPECT_LT(effect({{"nccl_collnet", "true"}}, large, group).slower, 1);
  EXPECT_EQ(effect({{"nccl_collnet", "true"}}, large, group, Collective::all_gather).slower, 1);
  const auto refused = [&](std::map<std::string, std::string> nccl) {
    return test::error_of([&] { effect(std::move(nccl), large, group); });
  };
  EXPECT_THAT(refused({{"nccl_algo", "AllReduce:CollNetChain"}}), HasSubstr("needs nccl_collnet: true"));
  group.network.network_reduces = false;
  EXPECT_THAT(refused({{"nccl_collnet", "true"}}), HasSubstr("write `sharp: true`"));
  EXPECT_EQ(effect({{"nccl_algo", "Ring"}, {"nccl_collnet", "true"}}, large, group).slower, 1);
}

// A tree's latency grows with the logarithm of the nodes, a ring's with their number.
TEST(NcclEffect, BetweenNodesIsAgainstNcclsOwnChoice) {
  EXPECT_EQ(effect({}, mib, h100s(512, 64)).slower, 1);
  EXPECT_GT(effect({{"nccl_algo", "AllReduce:Ring"}}, mib, h100s(512, 64)).slower, 3);
  EXPECT_EQ(effect({{"nccl_algo", "Ring"}}, 1000 * mib, a100s(64, 8)).slower, 1);  // NCCL's choice for large messages
  // AWS measured 438 to 444 GB/s on two p5, which no ring reaches.
  EXPECT_NEAR(effect({{"nccl_algo", "AllReduce:Ring"}}, 2000 * mib, h100s(16, 2)).slower, 450.0 / 360, 0.07);
}

// A ring with Simple is bound by the network, a ring with LL by its own 20 GB/s.
TEST(NcclEffect, IsOfWhatAFaultLeavesOfTheNetwork) {
  Communicator group = a100s(64, 8);
  const auto simple_to_ll = [&] { return ratio("Ring", "Simple", "Ring", "LL", 1e12, group); };
  const double whole = simple_to_ll();
  group.spread.network = 0.25;
  EXPECT_NEAR(simple_to_ll(), 4 * whole, 0.01 * whole);
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
  const auto nothing = [](const char* algorithm, const Communicator& of, Collective kind = Collective::all_reduce,
                          const char* protocol = "Simple") {
    return test::error_of([&] { ratio(algorithm, protocol, "default", "default", mib, of, kind); }) != "";
  };
  EXPECT_THROW(effect({{"nccl_algo", "Tree"}}, mib, a100s(8), Collective::all_gather), NotPredicted);
  EXPECT_TRUE(nothing("AllReduce:NVLS", a100s(8)));  // needs Hopper
  EXPECT_TRUE(nothing("AllReduce:NVLS", h100s(8, 1), Collective::all_reduce, "LL"));
  EXPECT_TRUE(nothing("AllReduce:CollNetChain", h100s(16, 2)));
  EXPECT_FALSE(nothing("AllReduce:CollNetChain", with_sharp(h100s(16, 2))));
  EXPECT_TRUE(nothing("AllReduce:NVLSTree", h100s(8, 1)));
  EXPECT_FALSE(nothing("AllReduce:NVLSTree", h100s(16, 2)));
  EXPECT_TRUE(nothing("AllGather:PAT", h100s(16, 2), Collective::all_gather));  // PAT needs one rank on each node
  EXPECT_FALSE(nothing("AllGather:PAT", h100s(16, 16), Collective::all_gather));
  EXPECT_TRUE(nothing("AllGather:PAT", h100s(17, 16), Collective::all_gather));  // one node has two
  EXPECT_THAT(test::error_of([] {
                effect({{"nccl_algo", "AllReduce:NVLSTree"}}, mib, h100s(8, 1));
              }),
              HasSubstr("NVLSTree"));
}

TEST(Known, IsWhatTheProgramShowsAndWhatNcclsModelHas) {
  config::Settings baseline, changed;
  changed.micro_batch_size = 4;
  changed.nccl["nccl_algo"] = "Ring";
  EXPECT_THAT(ignored_between(baseline, changed), ::testing::IsEmpty());
  changed.nccl["nccl_buffsize"] = "8 MiB";
  EXPECT_THAT(ignored_between(baseline, changed), ::testing::ElementsAre("nccl_buffsize"));
  EXPECT_THAT(ignored_between(changed, changed), ::testing::IsEmpty());
  config::Settings environment;
  environment.env["NCCL_IB_TIMEOUT"] = "22";
  EXPECT_THAT(ignored_between(baseline, environment), ::testing::ElementsAre("env"));
  // Fails if a variable is renamed, which would make it known.
  config::Settings all;
  all.env = environment.env;
  all.attention_engine = 1;
  all.cuda_graph = false;
  all.threads = 2;
  all.allreduce_algorithm = config::AllReduceAlgorithm::halving_doubling;
  all.data_file = "tokens.bin";
  EXPECT_THAT(ignored_between({}, all), ::testing::UnorderedElementsAre("attention_engine", "cuda_graph", "threads",
                                                                        "allreduce_algorithm", "env", "data_file"));
}

}  // namespace
}  // namespace harness::sim
