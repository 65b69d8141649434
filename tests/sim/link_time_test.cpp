#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <random>
#include <string>
#include <vector>

#include "config/files.h"
#include "machine/conditions.h"
#include "sim/costs.h"
#include "sim/link_time.h"
#include "support/paths.h"

namespace harness::sim {
namespace {

using program::Collective;

// A start of 10 s and one byte a second.
double law(double bytes) {
  return 10 + bytes;
}

TEST(SecondsBy, AreTheCurvesWithinItAndGoOnAsTheLawBeyond) {
  const config::Curve curve({{10, 40}, {90, 200}});
  EXPECT_DOUBLE_EQ(seconds_by(curve, 10, law), 40);
  EXPECT_DOUBLE_EQ(seconds_by(curve, 90, law), 200);
  EXPECT_DOUBLE_EQ(seconds_by(curve, 990, law), 2000);  // the law: 100 and 1000
  EXPECT_DOUBLE_EQ(seconds_by(curve, 0, law), 20);      // the law: 20 and 10
  EXPECT_DOUBLE_EQ(seconds_by({}, 5, law), 15);
}

config::Calibration with_curves() {
  config::Calibration c;
  c.within_node = config::WithinNode{0.5, 1e-3, 2e-3};
  c.measured.ranks = 2;
  c.measured.communications["all_reduce"] = config::Curve({{1e3, 0.1}, {1e6, 0.4}});
  return c;
}

const Network cores{.rank_bytes_per_s = 1e6, .node_bytes_per_s = 0, .switches_reduce = false, .node_of = {}};

// A ring of four ranks moves 3/2 of the size, a ring of two moves all of it.
TEST(MeasuredCurves, AreOfTheRanksThatMeasuredThemAndScaleAsARing) {
  const config::Calibration c = with_curves();
  EXPECT_DOUBLE_EQ(collective_seconds(Collective::all_reduce, 1e6, {2, 1, 2, 1}, cores, c), 0.4);
  EXPECT_NEAR(collective_seconds(Collective::all_reduce, 1e6 / 1.5, {4, 1, 4, 1}, cores, c), 0.4, 1e-9);
}

// The law has a start of 1 ms and half a megabyte per second; half of an all-reduce has 0.6 of that start.
TEST(MeasuredCurves, WhatHasNoneFollowsTheLawOfTheNode) {
  const config::Calibration c = with_curves();
  EXPECT_NEAR(collective_seconds(Collective::all_gather, 1e6, {2, 1, 2, 1}, cores, c), 0.6e-3 + 1, 1e-9);
  EXPECT_NEAR(message_seconds(1e6, 0, {}, cores, c), 2e-3 + 2, 1e-9);
}

TEST(ProductSeconds, WithoutMultiprocessorsAreOneTile) {
  config::Calibration c;
  c.product_share = 0.5;
  c.memory_share = 1;
  c.product_ramp = 100;
  c.software.kernel_s = 1;
  const Device cpu{.flops = 1e6, .memory_bytes_per_s = 1e12, .multiprocessors = 0};
  EXPECT_NEAR(product_seconds(10, 10, 900, 1, 1, cpu, c), 2.0 * 10 * 10 * 1000 / 0.5e6 + 1, 1e-9);
}

// A larger collective never takes less time, on any machine, with any algorithm, protocol and number of ranks.

config::Settings choosing(const std::string& algorithm, const std::string& protocol) {
  config::Settings s;
  if (algorithm != "default") s.nccl["nccl_algo"] = algorithm;
  if (protocol != "default") s.nccl["nccl_proto"] = protocol;
  return s;
}

Network machines(const std::string& hardware, int ranks, int per_node) {
  return network_of(config::hardware_named(hardware), {}, machine::Topology::node_by_node(ranks, per_node).node_of);
}

void expect_rising(const CollectiveTime& time, std::mt19937& random) {
  std::uniform_real_distribution<double> exponent(0, 36);
  std::vector<double> sizes;
  for (int i = 0; i <= 36; ++i) sizes.push_back(std::exp2(i));
  for (int i = 0; i < 60; ++i) sizes.push_back(std::exp2(exponent(random)));
  std::ranges::sort(sizes);
  for (std::size_t i = 1; i < sizes.size(); ++i) {
    const double less = time.seconds(sizes[i - 1]), more = time.seconds(sizes[i]);
    ASSERT_GT(less, 0);
    ASSERT_GE(more, less * (1 - 1e-12)) << sizes[i - 1] << " B against " << sizes[i] << " B";
  }
}

TEST(CollectiveTime, NeverFallsWithTheSize) {
  std::mt19937 random(1);
  const config::Calibration calibration = config::calibration_named("harness");
  int tried = 0;
  for (const char* hardware :
       {"dgx-a100", "dgx-h100", "hgx-b200", "gb200-nvl72", "gb300-nvl72", "p4d", "p5", "h20", "b300"}) {
    for (const auto& [ranks, per_node] : std::vector<std::pair<int, int>>{
             {2, 8}, {4, 8}, {8, 8}, {2, 1}, {16, 8}, {12, 4}, {24, 8}, {16, 1}, {128, 8}, {1024, 8}}) {
      const Network network = machines(hardware, ranks, per_node);
      const Spread spread{ranks, (ranks + per_node - 1) / per_node, std::min(ranks, per_node), 1};
      for (const char* algorithm : {"default", "Ring", "Tree", "NVLS", "NVLSTree", "PAT"}) {
        for (const char* protocol : {"default", "LL", "LL128", "Simple"}) {
          for (const Collective kind : {Collective::all_reduce, Collective::reduce_scatter, Collective::all_gather}) {
            SCOPED_TRACE(std::string(hardware) + " " + std::to_string(ranks) + "/" + std::to_string(per_node) + " " +
                         algorithm + " " + protocol);
            try {
              expect_rising(CollectiveTime(kind, spread, network, calibration, choosing(algorithm, protocol)), random);
              ++tried;
            } catch (const NotPredicted&) {  // NCCL would fail
            }
          }
        }
      }
    }
  }
  EXPECT_GT(tried, 1000);
}

// Without settings the time is that of the law, and a forced ring is not faster, on 128 H100.
TEST(CollectiveTime, FollowsTheLaw) {
  const config::Calibration calibration = config::calibration_named("harness");
  const Network network = machines("dgx-h100", 128, 8);
  const Spread spread{128, 16, 8, 1};
  const CollectiveTime time(Collective::all_reduce, spread, network, calibration, {});
  const CollectiveTime ring(Collective::all_reduce, spread, network, calibration, choosing("Ring", "default"));
  for (double bytes = 3e6; bytes < 3e10; bytes *= 1.37) {
    const double law = collective_seconds(Collective::all_reduce, bytes, spread, network, calibration);
    EXPECT_DOUBLE_EQ(time.seconds(bytes), law) << bytes;
    EXPECT_GE(ring.seconds(bytes), 0.998 * law) << bytes;
  }
}

// A forced choice loses less to a slow link than NCCL's own does, but it gains nothing from it.
TEST(CollectiveTime, NeverFallsWithAFault) {
  const config::Calibration calibration = config::calibration_named("harness");
  const Network network = machines("dgx-a100", 32, 8);
  const auto time_with = [&](double share) {
    return CollectiveTime(Collective::all_reduce, {{32, 4, 8, 1}, share}, network, calibration,
                          choosing("default", "LL"));
  };
  const CollectiveTime healthy = time_with(1);
  for (const double share : {0.5, 0.25, 0.1}) {
    const CollectiveTime slow = time_with(share);
    for (double bytes = 1e3; bytes < 1e10; bytes *= 1.7)
      EXPECT_GE(slow.seconds(bytes), healthy.seconds(bytes) * (1 - 1e-12)) << share << " " << bytes;
  }
}

TEST(CollectiveTime, OfMeasuredCurvesRisesToo) {
  const config::Curve scattered({{1024, 10e-6}, {4096, 8e-6}, {65536, 20e-6}});
  const config::Curve rising = scattered.rising();
  EXPECT_DOUBLE_EQ(rising.seconds_at(1024), 10e-6);
  EXPECT_DOUBLE_EQ(rising.seconds_at(4096), 10e-6);
  EXPECT_DOUBLE_EQ(rising.seconds_at(65536), 20e-6);
}

double us(const std::string& hardware, Collective kind, double bytes, int ranks, int per_node, double share = 0) {
  static const config::Calibration calibration = config::calibration_named("harness");
  Network network = machines(hardware, ranks, per_node);
  if (share > 0) network.network_share = share;
  const Spread spread{ranks, (ranks + per_node - 1) / per_node, std::min(ranks, per_node), 1};
  return 1e6 * collective_seconds(kind, bytes, spread, network, calibration);
}

// Measured times in microseconds: 8 H100 (NVIDIA, dgxc-benchmarking), 72 GPUs of a rack (NVIDIA/nccl-tests#43), 8 bytes
// on 2, 4 and 8 A100.
TEST(Lines, AreNearWhatWasMeasured) {
  const auto near = [](double law, double measured, double share) { EXPECT_NEAR(law, measured, share * measured); };
  const double kib = 1024, mib = 1024 * kib, gib = 1024 * mib;
  near(us("dgx-h100", Collective::all_reduce, 32 * kib, 8, 8), 18.7, 0.3);
  near(us("dgx-h100", Collective::all_reduce, 512 * kib, 8, 8), 20.4, 0.3);
  near(us("dgx-h100", Collective::all_reduce, mib, 8, 8), 27.8, 0.1);
  near(us("dgx-h100", Collective::all_reduce, 16 * mib, 8, 8), 121, 0.1);
  near(us("dgx-h100", Collective::all_reduce, gib, 8, 8), 4060, 0.05);
  near(us("gb200-nvl72", Collective::all_reduce, gib, 72, 72), 3110, 0.1);
  near(us("dgx-a100", Collective::all_reduce, 8, 2, 8), 9, 0.1);
  near(us("dgx-a100", Collective::all_reduce, 8, 4, 8), 14, 0.1);
  near(us("dgx-a100", Collective::all_reduce, 8, 8, 8), 24, 0.1);
}

// Published bus bandwidths with NCCL's own choice, and with NVLS, on networks whose cards are known.
TEST(Lines, AreWithinFifteenPercentOfMostPublishedBandwidths) {
  const std::map<std::string, std::string> machine{{"b200", "hgx-b200"},     {"gb200", "gb200-nvl72"},
                                                   {"gb300", "gb300-nvl72"}, {"h100-sxm", "dgx-h100"},
                                                   {"h200-sxm", "h200-sxm"}, {"a100-sxm-80gb", "dgx-a100"}};
  int rows = 0, near = 0;
  for (config::PublishedRow& row : config::read_published(test::source_dir() + "/configs/published/busbw.csv")) {
    const std::string &algorithm = row["algorithm"], &network = row["network"];
    const auto has = [&](const char* word) { return network.find(word) != std::string::npos; };
    if (row["collective"] != "all_reduce" || (algorithm != "auto" && algorithm != "NVLS")) continue;
    if (has("TCPXO") || row["size_gib"].empty() || row["note"].find("HCA down") != std::string::npos) continue;
    const int ranks = std::stoi(row["gpus"]), rack = ranks <= 72 ? 72 : 64;
    const bool racks = row["gpu"].starts_with("gb") && !has("off");
    const int per_node = std::min(ranks, racks ? rack : std::stoi(row["per_node"]));
    const double bytes = std::stod(row["size_gib"]) * 0x1p30, share = has("EFA") || has("RoCE") ? 0.9 : 0;
    const double seconds = 1e-6 * us(machine.at(row["gpu"]), Collective::all_reduce, bytes, ranks, per_node, share);
    const double bus = 2.0 * (ranks - 1) / ranks * bytes / seconds / 1e9;
    ++rows;
    near += std::abs(bus / std::stod(row["busbw_gb_s"]) - 1) < 0.15 ? 1 : 0;
  }
  EXPECT_GE(rows, 35);
  EXPECT_GE(near, 0.85 * rows) << near << " of " << rows;
}

}  // namespace
}  // namespace harness::sim
