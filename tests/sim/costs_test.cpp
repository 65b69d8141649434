#include "sim/costs.h"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "machine/conditions.h"

namespace harness::sim {
namespace {

using program::Axis;
using program::Collective;

const Device gpu{.flops = 100e12, .memory_bytes_per_s = 1e12, .multiprocessors = 100};

config::Calibration plain() {
  config::Calibration c;
  c.product_share = c.memory_share = c.network_share = 1;
  c.product_ramp = 0;
  c.attention_forward = c.attention_backward = 0.5;
  c.attention_ramp = 1000;
  c.network_start_s = 60e-6;
  c.network_hop_s = 20e-6;
  c.message_start_s = 30e-6;
  return c;
}

// 100 tiles of 256 by 128 are one full wave on 100 multiprocessors; one more row starts a second wave.
TEST(ProductSeconds, GrowByWholeWaves) {
  const double full = product_seconds(2560, 1280, 4096, 1, 0, gpu, plain());
  EXPECT_NEAR(full, 2.0 * 2560 * 1280 * 4096 / gpu.flops, 1e-12);
  const double more = product_seconds(2561, 1280, 4096, 1, 0, gpu, plain());
  EXPECT_GT(more, 1.05 * full);
  EXPECT_LE(more, 2 * full);
}

TEST(ProductSeconds, TakeAtLeastWhatTheirBytesTake) {
  EXPECT_NEAR(product_seconds(16, 1280, 128, 1, 5e9, gpu, plain()), 5e-3, 1e-9);
}

// 4 tiles of 128 by 128 on 100 multiprocessors: a long k is split into up to eight parts.
TEST(ProductSeconds, SplitALongKWhereTilesAreFew) {
  const double whole = 2.0 * 128 * 128 * 65536 / (gpu.flops / gpu.multiprocessors);
  EXPECT_LT(product_seconds(256, 256, 65536, 1, 0, gpu, plain()), whole / 4);
}

TEST(AttentionSeconds, ReachHalfOfTheirShareAtTheRamp) {
  const double seconds = attention_seconds(1e12, 1000, 128, false, gpu, plain());
  EXPECT_NEAR(seconds, 1e12 / (gpu.flops * 0.5 * 0.5), 1e-9);
}

// With as many keys as the kernel's ramp, a kernel reaches half of its share. A generation that lacks a kernel uses its
// default one.
TEST(AttentionSeconds, OfAKernelAreThoseOfTheGeneration) {
  config::Calibration c = plain();
  const auto seconds = [&](config::AttentionKernel kernel, int capability, std::int64_t keys, std::int64_t head_dim) {
    c.attention_kernel = kernel;
    Device d = gpu;
    d.compute_capability = capability;
    d.flops = 1;  // the rate of products, which must not matter
    d.attention_flops = 1e14;
    return attention_seconds(1e14, keys, head_dim, false, d, c);
  };
  using Kernel = config::AttentionKernel;
  EXPECT_NEAR(seconds(Kernel::fa3, 90, 700, 128), 2 / 0.64, 1e-9);
  EXPECT_NEAR(seconds(Kernel::fa2, 80, 500, 64), 2 / (0.62 * 0.92), 1e-9);
  EXPECT_NEAR(seconds(Kernel::fa4, 103, 1000, 128), 2 / 0.66, 1e-9);
  EXPECT_EQ(seconds(Kernel::fa4, 90, 600, 128), seconds(Kernel::cudnn, 90, 600, 128));
  EXPECT_EQ(seconds(Kernel::fa3, 80, 500, 128), seconds(Kernel::fa2, 80, 500, 128));
}

// A product reaches half of its rate at k = ramp with 16 bits, and at k = 2 ramp with 8 bits.
TEST(ProductSeconds, OfFewerBitsHaveARateAndARampOfTheirOwn) {
  config::Calibration c = plain();
  c.product_ramp = 128;
  Device d = gpu;
  d.low_flops = 2 * gpu.flops;
  const auto seconds = [&](std::int64_t k, int bits) { return product_seconds(25600, 12800, k, 1, 0, d, c, bits); };
  EXPECT_NEAR(seconds(4096, 8), seconds(4096, 16) / 2 * (4096 + 256) / (4096 + 128), 1e-9);
  EXPECT_NEAR(seconds(4096, 4), seconds(4096, 16) / 2 * (4096 + 512) / (4096 + 128), 1e-9);
}

Network links() {
  return {.rank_bytes_per_s = 300e9, .node_bytes_per_s = 200e9, .switches_reduce = false, .node_of = {}};
}

// A ring all-reduce moves 2 (n - 1) / n of the bytes over its slowest link (Patarasuk and Yuan 2009).
TEST(CollectiveSeconds, AreThoseOfARing) {
  const double bytes = 1e9;
  const double within = collective_seconds(Collective::all_reduce, bytes, {8, 1, 8, 1}, links(), plain());
  EXPECT_NEAR(within, 90e-6 + 2 * 7.0 / 8 * bytes / 230e9, 1e-9);
  const double scatter = collective_seconds(Collective::reduce_scatter, bytes, {8, 1, 8, 1}, links(), plain());
  EXPECT_NEAR(scatter, 0.6 * 90e-6 + 7.0 / 8 * bytes / 230e9, 1e-9);
  // 16 nodes with a member each; eight such rings at once share every node's network.
  const double across = collective_seconds(Collective::all_reduce, bytes, {16, 16, 1, 8}, links(), plain());
  EXPECT_NEAR(across, 60e-6 + 2 * 15 * 20e-6 + 2 * 15.0 / 16 * bytes / (200e9 / 8), 1e-9);
  EXPECT_EQ(collective_seconds(Collective::all_reduce, bytes, {1, 1, 1, 1}, links(), plain()), 0);
}

TEST(SpreadOf, CountsNodesAndWhoSharesTheirNetwork) {
  const program::Layout layout{{Axis::tensor, 4}, {Axis::data, 4}};
  Network network = links();
  network.node_of = machine::Topology::node_by_node(16, 8).node_of;
  const program::Group tensor{"tensor", program::AxisSet::of({Axis::tensor}), {}};
  const program::Group data{"data", program::AxisSet::of({Axis::data}), {}};
  const auto spread_of = [&](const program::Group& group) {
    return program::spreads_of(group, layout, network.node_of)[5];
  };
  const program::Spread of_tensor = spread_of(tensor), of_data = spread_of(data);
  EXPECT_EQ(of_tensor.nodes, 1);
  EXPECT_EQ(of_tensor.most_on_a_node, 4);
  EXPECT_EQ(of_data.nodes, 2);
  EXPECT_EQ(of_data.most_on_a_node, 2);
  EXPECT_EQ(of_data.instances_on_a_node, 4);
  // On nodes of six ranks, the second tensor group is on both nodes, beside one that stays on its own.
  network.node_of = machine::Topology::node_by_node(16, 6).node_of;
  EXPECT_EQ(spread_of(tensor).instances_on_a_node, 1);
  // On nodes of seven, its second node is also one of the last group's.
  network.node_of = machine::Topology::node_by_node(16, 7).node_of;
  EXPECT_EQ(spread_of(tensor).instances_on_a_node, 2);
}

TEST(MessageSeconds, ShareANodesNetworkWithTheOtherSenders) {
  config::Calibration c = plain();
  const Spread on_one_node{8, 1, 8, 1};
  EXPECT_NEAR(message_seconds(1e8, 8, on_one_node, links(), c), 30e-6 + 8e8 / 200e9, 1e-9);
  EXPECT_NEAR(message_seconds(1e8, 0, on_one_node, links(), c), 30e-6 + 1e8 / 200e9, 1e-9);
  c.software.scatters_messages = true;  // each rank sends an eighth, and the receivers gather
  const double gather = collective_seconds(Collective::all_gather, 1e8, on_one_node, links(), c);
  EXPECT_NEAR(message_seconds(1e8, 8, on_one_node, links(), c), 30e-6 + 1e8 / 200e9 + gather, 1e-9);
}

// Without NVLink, the shares of a message are gathered at the rate of the node's PCIe links; if tensor ranks are on
// several nodes, over the network.
TEST(MessageSeconds, AreGatheredOverTheLinksThatTheReceiversHave) {
  config::Calibration c = plain();
  c.software.scatters_messages = true;
  Network pcie = links();
  pcie.rank_bytes_per_s = 30e9;
  const double over_pcie = message_seconds(1e8, 8, {8, 1, 8, 1}, pcie, c);
  EXPECT_NEAR(over_pcie, 30e-6 + 1e8 / 200e9 + 0.6 * 90e-6 + 7.0 / 8 * 1e8 / (30e9 * 230 / 300), 1e-9);
  pcie.rank_bytes_per_s = 0;  // not used
  const double over_network = message_seconds(1e8, 8, {8, 8, 1, 8}, pcie, c);
  EXPECT_NEAR(over_network, 30e-6 + 1e8 / 200e9 + 60e-6 + 7 * 20e-6 + 7.0 / 8 * 1e8 / (200e9 / 8), 1e-9);
}

// Eight GPUs of a node with four cards of 50 GB/s.
Network four_cards(int ranks_of_node) {
  config::Hardware hardware;
  hardware.gpus_of_node = 8;
  hardware.nics_of_node = 4;
  hardware.node_bytes_per_s = 200e9;
  hardware.nvlink_bytes_per_s = 450e9;
  hardware.nvswitch = true;
  hardware.compute_capability = 90;
  return network_of(hardware, {}, machine::Topology::node_by_node(2 * ranks_of_node, ranks_of_node).node_of);
}

TEST(NetworkRate, IsOfTheCardsThatAGroupsRanksReach) {
  const Network all = four_cards(8);
  EXPECT_TRUE(all.switches_reduce);
  EXPECT_FALSE(all.network_reduces);
  EXPECT_EQ(network_rate({16, 2, 8, 1}, all), 200e9);
  EXPECT_EQ(network_rate({2, 2, 1, 8}, all), 25e9);   // eight groups at once
  EXPECT_EQ(network_rate({2, 2, 1, 1}, all), 50e9);   // a single group uses one card
  EXPECT_EQ(network_rate({8, 2, 4, 1}, all), 100e9);  // half of the ranks reach half of the cards
  const Network two = four_cards(2);                  // two ranks on a node of eight GPUs
  EXPECT_EQ(network_rate({4, 2, 2, 1}, two), 50e9);
}

TEST(NetworkOf, TakesWhatAConfigurationSaysForTheRanksThatThereAre) {
  config::Hardware hardware;
  hardware.gpus_of_node = 8;
  hardware.nics_of_node = 8;
  hardware.node_bytes_per_s = 400e9;
  config::Fabric fabric;
  fabric.node_bytes_per_s = 150e9;
  EXPECT_EQ(network_of(hardware, fabric, {0, 0, 1, 1}).node_bytes_per_s, 150e9);
  EXPECT_EQ(network_of(hardware, {}, {0, 0, 1, 1}).node_bytes_per_s, 100e9);
  EXPECT_EQ(network_of(hardware, {}, {0, 0, 0, 0, 0, 0, 0, 0, 1}).node_bytes_per_s, 400e9);
}

TEST(MessageSeconds, OfOneSenderAreThoseOfItsNetworkCard) {
  EXPECT_NEAR(message_seconds(1e8, 1, {}, four_cards(8), plain()), 30e-6 + 1e8 / 50e9, 1e-9);
}

// ---- the host -------------------------------------------------------------------------------------------------------

Cost issued(double gpu_s, double host_s) {
  return {.alone = ticks_of(gpu_s), .host = ticks_of(host_s)};
}

// `late`: the host takes 3 s to issue the first second of GPU work. `early`: it is done long before the GPU.
TEST(PassSeconds, OfOneRankAreTheLongestWayThroughBoth) {
  const std::vector<Cost> late{issued(1, 3), issued(4, 1)}, early{issued(4, 1), issued(4, 1)},
      launch_bound(3, issued(1, 2));
  EXPECT_EQ(pass_seconds(late, false, 4), 8);
  EXPECT_EQ(pass_seconds(early, false, 4), 9);
  EXPECT_EQ(pass_seconds(launch_bound, false, 4), 7);
}

TEST(PassSeconds, OfRanksThatMeetAreASoftMaximum) {
  const std::vector<Cost> alike{issued(2, 1), issued(2, 3)}, far(2, issued(10, 0.5));
  EXPECT_NEAR(pass_seconds(alike, true, 4), 4 * std::pow(2, 0.25), 1e-12);
  EXPECT_NEAR(pass_seconds(far, true, 4), 20, 1e-4);
}

// Two forward passes of a micro-batch each, with tensor-parallel all-reduces in between, and an optimizer.
TEST(StretchByHost, IsOfThePassesComputationsAlone) {
  program::ProgramSet set;
  set.layout = program::Layout{{program::Axis::tensor, 2}};
  set.groups.push_back({"tensor", program::AxisSet::of({program::Axis::tensor}), {}});
  program::Program program;
  const auto add = [&](program::Action action, program::Phase phase, int micro_batch) {
    program::Operation op;
    op.action = std::move(action);
    op.label.phase = phase;
    op.label.micro_batch = micro_batch;
    program.step.push_back(op);
  };
  for (const int micro_batch : {0, 1}) {
    add(program::Gelu{}, program::Phase::forward, micro_batch);
    add(program::AllReduce{.group = 0}, program::Phase::forward, micro_batch);
  }
  add(program::AdamW{}, program::Phase::optimizer, -1);
  std::vector<Cost> costs{issued(2, 4), issued(2, 0), issued(2, 1), issued(2, 0), issued(1, 9)};
  stretch_by_host(set, program, costs, true, 4);
  const double slow = 4 * std::pow(2, 0.25), fast = std::pow(256 + 1, 0.25);
  const std::vector<double> expected{slow - 2, 2, fast - 2, 2, 1};
  for (std::size_t i = 0; i < costs.size(); ++i) {
    EXPECT_NEAR(seconds_of(costs[i].alone), expected[i], 1e-11) << i;
    EXPECT_EQ(costs[i].host, 0) << i;
  }
}

TEST(HostPaces, WhereTheHostWaits) {
  config::Software eager;
  eager.host_s = 1e-5;
  eager.host_power = 4;
  config::Software graph = eager;
  graph.host_s = 0;
  const program::Layout alone, stages{{program::Axis::pipeline, 2}}, tensor{{program::Axis::tensor, 2}};
  config::Settings s;
  EXPECT_FALSE(host_paces(alone, s, eager));
  EXPECT_TRUE(host_paces(stages, s, eager));
  EXPECT_TRUE(host_paces(tensor, s, eager));
  EXPECT_FALSE(host_paces(tensor, s, graph));
  const program::Layout replicas{{program::Axis::data, 4}};
  EXPECT_FALSE(host_paces(replicas, s, eager));
  s.sharding = config::Sharding::parameters;  // gathers meet in every layer
  EXPECT_TRUE(host_paces(replicas, s, eager));
}

}  // namespace
}  // namespace harness::sim
