// A larger collective never takes less time: whatever the machine, the algorithm, the protocol and the ranks are.
#include "sim/collective_time.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <random>
#include <string>
#include <vector>

#include "sim/known.h"

namespace harness::sim {
namespace {

using program::Collective;

config::Settings choosing(const std::string& algorithm, const std::string& protocol) {
  config::Settings s;
  if (algorithm != "default") s.nccl["nccl_algo"] = algorithm;
  if (protocol != "default") s.nccl["nccl_proto"] = protocol;
  return s;
}

Network machines(const std::string& hardware, int ranks, int per_node) {
  std::vector<int> node_of;
  for (int rank = 0; rank < ranks; ++rank) node_of.push_back(rank / per_node);
  return network_of(config::hardware_named(hardware), {}, node_of);
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
  for (const char* hardware : {"dgx-a100", "dgx-h100", "hgx-b200", "p4d", "p5"}) {
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
            } catch (const NotPredicted&) {  // NCCL would end
            }
          }
        }
      }
    }
  }
  EXPECT_GT(tried, 1000);
}

// Between the points at which it is taken, it follows the law where that rises: 128 H100 with a ring alone.
TEST(CollectiveTime, FollowsTheLaw) {
  const config::Calibration calibration = config::calibration_named("harness");
  const Network network = machines("dgx-h100", 128, 8);
  const Spread spread{128, 16, 8, 1};
  const CollectiveTime time(Collective::all_reduce, spread, network, calibration, choosing("Ring", "default"));
  for (double bytes = 3e6; bytes < 3e10; bytes *= 1.37) {
    const double law = collective_seconds(Collective::all_reduce, bytes, spread, network, calibration);
    EXPECT_NEAR(time.seconds(bytes), law, 2e-3 * law) << bytes;
  }
}

TEST(CollectiveTime, OfMeasuredCurvesRisesToo) {
  const config::Curve scattered({{1024, 10e-6}, {4096, 8e-6}, {65536, 20e-6}});
  const config::Curve rising = scattered.rising();
  EXPECT_DOUBLE_EQ(rising.seconds_at(1024), 10e-6);
  EXPECT_DOUBLE_EQ(rising.seconds_at(4096), 10e-6);
  EXPECT_DOUBLE_EQ(rising.seconds_at(65536), 20e-6);
}

}  // namespace
}  // namespace harness::sim
