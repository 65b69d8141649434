// Finds slow components under load: a simulated job measures ranks, nodes, links and copies of known speed.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "base/text.h"
#include "base/units.h"
#include "bench_job.h"
#include "doctor/load_stage.h"

namespace harness::doctor {
namespace {

using test::nodes_of;
using test::said_by;
using test::told;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using Lines = std::vector<std::string>;

config::Hardware h100() {
  config::Hardware hardware;
  hardware.name = "h100-sxm";
  hardware.peaks_flops[config::Precision::bf16] = 1300e12;  // 1 ms per product is 1100 TFLOP/s
  hardware.nvlink_bytes_per_s = 450e9;
  return hardware;
}

TEST(LoadStage, EqualRanksHaveNumbersAndNoFault) {
  test::GpuJob job(4, 2);
  const config::Hardware hardware = h100();
  const auto said = said_by(job, &hardware);
  EXPECT_EQ(told(said), Lines{});
  EXPECT_THAT(
      told(said, Verdict::skip),
      ElementsAre(
          "info load.products : products of 8 ranks: 1.10 PFLOP/s each, 85 % of h100-sxm's peak; slowest: rank 0 "
          "on host0 with 1.10 PFLOP/s",
          "info load.host_copies : host and GPU copy, on all ranks at once: 55 GB/s to the GPU, 52 GB/s from the GPU, "
          "90 "
          "GB/s both ways at once; slowest: rank 0 on host0 with 55 GB/s to the GPU",
          "info load.node_all_reduce : all-reduce of 2 ranks within a node: bus bandwidth 300 GB/s, "
          "67 % of h100-sxm's NVLinks",
          "info load.pairs : 100 GB/s between two nodes, 50 GB/s in one direction for each rank"));
  EXPECT_EQ(said.back().finding.verdict, Verdict::pass);
}

TEST(LoadStage, WhoIsSlowIsNamed) {
  struct Case {
    std::function<void(test::GpuJob&)> change;
    std::string told;
  };
  const std::vector<Case> cases{
      {[](test::GpuJob& job) { job.product_s[5] = 1.06e-3; },
       "warn load.products host2: rank 5 reaches 1.04 PFLOP/s in matrix products, the fast ones 1.10 PFLOP/s"},
      {[](test::GpuJob& job) { job.product_s[5] = 1.2e-3; },
       "fail load.products host2: rank 5 reaches 916 TFLOP/s in matrix products, the fast ones 1.10 PFLOP/s"},
      {[](test::GpuJob& job) { job.product_s.assign(8, 2e-3); },
       "warn load.products : products of 8 ranks: 550 TFLOP/s each, 42 % of h100-sxm's peak; slowest: rank 0 on host0 "
       "with 550 TFLOP/s"},
      {[](test::GpuJob& job) {
         job.node_bytes_per_s = {300e9, 300e9, 100e9, 300e9};
       },
       "fail load.node_all_reduce host2: the all-reduce within the node reaches 100 GB/s, the fast ones 300 GB/s"},
      {[](test::GpuJob& job) {
         job.way = [](int a, int b) { return std::minmax(a, b) == std::minmax(1, 3) ? 35e9 : 50e9; };
       },
       "warn load.pairs host1: 2 of 2 ranks reach 35 GB/s between host1 and host3, the fast ones 50 GB/s"}};
  const config::Hardware hardware = h100();
  for (const Case& one : cases) {
    test::GpuJob job(4, 2);
    one.change(job);
    EXPECT_EQ(told(said_by(job, &hardware)), Lines{one.told});
  }
}

TEST(LoadStage, WhatSlowsAGpuDownUnderLoadIsNamed) {
  test::GpuJob job(2, 2);
  for (machine::GpuStatistics& gpu : job.gpu) {
    gpu.samples = 50;
    gpu.mean_sm_clock_hz = 1.7e9;
    gpu.max_temperature_c = 60;
    gpu.max_power_w = 690;
    gpu.throttle_reasons = 0x4;  // the power cap, which is normal
  }
  EXPECT_EQ(told(said_by(job)), Lines{});
  job.gpu[3].throttle_reasons = 0x40 | 0x8;
  job.gpu[2].throttle_reasons = 0x2;
  job.gpu[0].throttle_reasons = 0x20;
  EXPECT_THAT(told(said_by(job)),
              ElementsAre(HasSubstr("warn load.clocks host0: the GPU of rank 0, at 60 °C and 690 W, is slowed down"),
                          "warn load.clocks host1: somebody has capped the clocks of the GPU of rank 2",
                          HasSubstr("fail load.clocks host1: the GPU of rank 3, at 60 °C and 690 W, is slowed down")));
  for (machine::GpuStatistics& gpu : job.gpu) gpu.throttle_reasons = 0;
  job.gpu[1].mean_sm_clock_hz = 1.4e9;
  EXPECT_EQ(told(said_by(job)),
            Lines{"warn load.clocks host0: the GPU of rank 1 runs at 1400 MHz under load, the fast ones at 1700"});
}

TEST(LoadStage, ARankWithASlowLinkIsNamedAndItsPartnersAreNot) {
  for (const int nodes : {4, 5, 16}) {
    test::GpuJob job(nodes, 2);
    job.link_bytes_per_s[5] = 20e9;
    EXPECT_EQ(told(said_by(job)),
              Lines{"fail load.pairs host2: rank 5 reaches 20 GB/s to every other node it met, the fast ones 50 GB/s"})
        << nodes;
  }
}

TEST(LoadStage, RanksInNoOrderAreLeftOut) {
  test::GpuJob job(2, 2);
  for (const int rank : {1, 2}) job.seats()[rank].node = 1;
  job.seats()[3].node = 0;
  const auto said = said_by(job);
  ASSERT_EQ(said.size(), 1u);
  EXPECT_EQ(said[0].finding.verdict, Verdict::info);
  EXPECT_THAT(said[0].finding.evidence, HasSubstr("does not number ranks node by node"));
  EXPECT_TRUE(job.requests.empty());
}

// Two nodes of a GPU each, the ports that they have, and what their link reaches of what the ports carry.
struct Link {
  std::vector<std::string> port_rates;
  double bytes_per_s;
  std::string told;
  std::string nccl_ib_hca = {}, vendor = {};
};

TEST(LoadStage, LinksAreHeldAgainstTheirPorts) {
  const std::string hundred = "100 Gb/sec (4X EDR)", four_hundred = "400 Gb/sec (4X NDR)";
  const std::vector<Link> links{
      {{four_hundred}, 48e9, "info 48 GB/s: 96 % of what their ports carry"},
      {{four_hundred}, 12e9, "warn 12 GB/s: 24 % of what their ports carry"},
      {{hundred, four_hundred}, 12e9, "warn 12 GB/s: 24 % of what their ports carry"},
      // NCCL is to leave the quick one out.
      {{hundred, four_hundred}, 12e9, "info 12 GB/s: 96 % of what their ports carry", "mlx5_0"},
      // The trays of a rack are joined by NVLink.
      {{four_hundred}, 300e9, "info 300 GB/s"},
      // A node of AWS has four adapters of 100 Gb/s for each GPU.
      {std::vector(4, hundred), 12e9, "warn 12 GB/s: 24 % of what their ports carry", "", "0x1d0f"}};
  for (const Link& link : links) {
    test::GpuJob job(2, 1);
    job.link_bytes_per_s.assign(2, link.bytes_per_s);
    std::vector<Node> nodes = nodes_of(job);
    for (Node& node : nodes) {
      node.facts.set("gpu/0000:10:00.0/device", "0x2330");
      if (!link.nccl_ib_hca.empty()) node.ranks[0].facts.set("env/NCCL_IB_HCA", link.nccl_ib_hca);
      for (std::size_t i = 0; i < link.port_rates.size(); ++i) {
        if (!link.vendor.empty()) node.facts.set(fmt::format("hca/mlx5_{}/vendor", i), link.vendor);
        node.facts.set(fmt::format("port/mlx5_{}/1/state", i), "ACTIVE");
        node.facts.set(fmt::format("port/mlx5_{}/1/rate", i), link.port_rates[i]);
      }
    }
    const auto said = run_load_stage({job, nodes, config::BackendKind::cuda, ""}, nullptr);
    const auto pairs = std::ranges::find(said, "load.pairs", &StageFinding::check);
    ASSERT_NE(pairs, said.end()) << link.told;
    const std::string rate = show_bandwidth(link.bytes_per_s), &evidence = pairs->finding.evidence;
    const std::string head = fmt::format("{0} between two nodes, {0} in one direction for each rank", rate);
    ASSERT_THAT(evidence, ::testing::StartsWith(head));
    EXPECT_EQ(fmt::format("{} {}{}", name_of(pairs->finding.verdict), rate, evidence.substr(head.size())), link.told);
  }
}

TEST(LoadStage, EndsAtItsLimitWithWhatItHas) {
  test::GpuJob job(16, 2);
  job.block_s = 7;
  job.product_s[5] = 2e-3;
  const auto said = said_by(job);
  EXPECT_THAT(told(said, Verdict::skip), Contains(HasSubstr("fail load.products host2: rank 5")));
  EXPECT_EQ(said.back().check, "stage.load");
  EXPECT_EQ(said.back().finding.verdict, Verdict::info);
  EXPECT_THAT(said.back().finding.evidence, HasSubstr("of 60 s, without pairs of nodes 1 apart, pairs of nodes 8"));
  for (std::size_t i = 0; i < job.requests.size(); ++i) {
    const config::Deadlines& d = job.requests[i].deadlines;
    EXPECT_LE(job.begun_s[i] + (i < 3 ? 0 : d.start_s + d.step_s), load_limit_s) << i;
  }
}

TEST(LoadStage, ABlockThatFailsIsSaidAndTheOthersCount) {
  test::GpuJob job(4, 2);
  job.fails = [](const job::BlockRequest& r) {
    return r.case_name == "node_all_reduce" ? "rank 3 on host1: no step finished within 9 s (deadlines: step)" : "";
  };
  job.link_bytes_per_s[5] = 20e9;
  const auto said = said_by(job);
  for (const StageFinding& one : said) EXPECT_NE(one.finding.verdict, Verdict::pass) << one.finding.evidence;
  EXPECT_THAT(told(said), ElementsAre(HasSubstr("fail load.pairs host2: rank 5"),
                                      HasSubstr("fail stage.load host1: all-reduce in each node did not end: rank 3")));
}

// A slow start reduces the time for later blocks: each block gets a deadline within the limit. The last block on the
// workers of the products runs in any case, so earlier blocks must leave enough time for it.
TEST(LoadStage, EachBlockHasTheTimeThatIsLeft) {
  for (const auto& [block_s, blocks] : {std::pair{1.0, 7u}, {5.0, 7u}, {12.0, 3u}, {23.0, 3u}, {32.0, 2u}}) {
    test::GpuJob job(4, 2);
    job.block_s = block_s;
    said_by(job);
    EXPECT_EQ(job.requests.size(), blocks) << block_s;
    for (std::size_t i = 0; i < job.requests.size(); ++i) {
      const config::Deadlines& own = job.requests[i].deadlines;
      EXPECT_EQ(own.step_s, job.requests[0].deadlines.step_s);  // workers of several blocks need one step deadline
      EXPECT_GE(own.start_s, own.step_s) << block_s;
      EXPECT_LE(job.begun_s[i] + own.start_s + own.step_s, load_limit_s) << block_s << ", block " << i;
    }
  }
}

TEST(LoadStage, AStopEndsIt) {
  test::GpuJob job(4, 2);
  job.stops = 1;
  const auto said = said_by(job);
  EXPECT_TRUE(job.requests.empty());
  EXPECT_EQ(said.back().finding.verdict, Verdict::info);
}

// The explanation comes before any worker starts.
TEST(LoadStage, ALaunchThatIsInTheWayIsExplained) {
  const auto evidence = [](test::GpuJob& job) {
    const auto said = said_by(job);
    EXPECT_EQ(said.size(), 1u);
    EXPECT_EQ(said[0].finding.verdict, Verdict::info);
    EXPECT_TRUE(job.requests.empty());
    return said[0].finding.evidence;
  };
  test::GpuJob crowded(2, 8);
  for (int rank = 8; rank < 16; ++rank) {
    machine::GpuView& gpus = crowded.seats()[rank].gpus;
    gpus.count = 7;
    gpus.names.pop_back();
  }
  EXPECT_EQ(evidence(crowded), "left out: host1 has 8 ranks and 7 GPUs");
  test::GpuJob blind(2, 1);
  blind.seats()[1].gpus = {0, 0, {}};
  EXPECT_EQ(evidence(blind), "left out: a rank sees no GPU on host1");
}

TEST(LoadStage, EveryNodeMeetsOthersAndNoneTwiceInARound) {
  EXPECT_THAT(pair_rounds(1), ElementsAre());
  EXPECT_THAT(pair_rounds(2), ElementsAre(PairRound{1, 0, 2}));
  EXPECT_THAT(pair_rounds(16),
              ElementsAre(PairRound{1, 0, 16}, PairRound{8, 0, 16}, PairRound{2, 0, 16}, PairRound{4, 0, 16}));
  for (int nodes = 2; nodes <= 130; ++nodes) {
    std::vector<int> met(static_cast<std::size_t>(nodes), 0);
    for (const PairRound& round : pair_rounds(nodes)) {
      EXPECT_EQ(round.nodes % (2 * round.distance), 0) << nodes;
      EXPECT_LE(round.first + round.nodes, nodes);
      for (int node = round.first; node < round.first + round.nodes; ++node) ++met[node];
    }
    EXPECT_THAT(met, ::testing::Each(::testing::Ge(1))) << nodes;
  }
}

machine::HostCopies share_of(const machine::HostCopies& rates, double share) {
  return {share * rates.to_device_bytes_per_s, share * rates.from_device_bytes_per_s, share * rates.both_bytes_per_s};
}

TEST(HostCopies, AreMeasuredWhereTheProductsRan) {
  test::GpuJob job(2, 2);
  said_by(job);
  ASSERT_GE(job.requests.size(), 4u);
  EXPECT_EQ(job.requests[3].case_name, "host_copies");
  EXPECT_TRUE(std::holds_alternative<job::CopyWithHost>(job.requests[3].task));
  EXPECT_EQ(job.requests[3].layout.ranks(), 4);  // all ranks at once
  EXPECT_EQ(job.started, 3);                     // for these four blocks, for the all-reduce and for the pairs
}

TEST(HostCopies, ASlowRankIsNamedWithItsGpu) {
  test::GpuJob job(4, 2);
  job.host_copies[5].to_device_bytes_per_s = 27e9;
  const auto said = said_by(job);
  EXPECT_THAT(told(said), ElementsAre("fail load.host_copies host2: rank 5 with GPU 0000:1b:00.0 copies 27 GB/s to the "
                                      "GPU (the fast ones 55 GB/s)"));
  const auto found =
      std::ranges::find(said, Verdict::fail, [](const StageFinding& one) { return one.finding.verdict; });
  for (const char* check : {"pcie.width", "topo.numa", "rank.near_gpu", "pcie.iommu"})
    EXPECT_THAT(found->finding.remedy, HasSubstr(check));
  job.host_copies[5] = {55e9, 42e9, 70e9};
  EXPECT_THAT(told(said_by(job)),
              ElementsAre("warn load.host_copies host2: rank 5 with GPU 0000:1b:00.0 copies 42 GB/s from the GPU (the "
                          "fast ones 52 GB/s), 70 GB/s both ways at once (the fast ones 90 GB/s)"));
}

TEST(HostCopies, AreMeasuredByWorkersOfTheirOwnWhereTheProductsFail) {
  test::GpuJob job(4, 2);
  job.host_copies[5] = share_of(job.host_copies[5], 0.5);
  int blocks = 0;
  for (const int failing : {1, 2, 3}) {
    job.fails = [&](const job::BlockRequest& r) {
      return r.case_name == "products" && ++blocks == failing ? "rank 3 on host1: no step finished" : "";
    };
    blocks = 0;
    EXPECT_THAT(told(said_by(job)), Contains(HasSubstr("fail load.host_copies host2: rank 5"))) << failing;
  }
}

}  // namespace
}  // namespace harness::doctor
