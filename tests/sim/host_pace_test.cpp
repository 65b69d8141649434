#include "sim/costs.h"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

namespace harness::sim {
namespace {

// The host issues for 3 s before the GPU has its first second of work, and is done long before the GPU is.
TEST(PassSeconds, OfOneRankAreTheLongestWayThroughBoth) {
  const std::vector<Issued> late{{1, 3}, {4, 1}}, early{{4, 1}, {4, 1}}, launch_bound{{1, 2}, {1, 2}, {1, 2}};
  EXPECT_EQ(pass_seconds(late, false, 4), 8);
  EXPECT_EQ(pass_seconds(early, false, 4), 9);
  EXPECT_EQ(pass_seconds(launch_bound, false, 4), 7);
}

TEST(PassSeconds, OfRanksThatMeetAreASoftMaximum) {
  const std::vector<Issued> alike{{2, 1}, {2, 3}}, far{{10, 0.5}, {10, 0.5}};
  EXPECT_NEAR(pass_seconds(alike, true, 4), 4 * std::pow(2, 0.25), 1e-12);
  EXPECT_NEAR(pass_seconds(far, true, 4), 20, 1e-4);
}

// Two passes of a micro-batch each, with what tensor ranks tell each other in between, and an optimizer.
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
  const std::vector<Issued> issued{{2, 4}, {2, 0}, {2, 1}, {2, 0}, {1, 9}};
  const std::vector<double> stretch = stretch_by_host(set, program, issued, true, 4);
  const double slow = 4 * std::pow(2, 0.25), fast = std::pow(256 + 1, 0.25);
  EXPECT_NEAR(stretch[0], (slow - 2) / 2, 1e-12);
  EXPECT_EQ(stretch[1], 1);
  EXPECT_NEAR(stretch[2], (fast - 2) / 2, 1e-12);
  EXPECT_EQ(stretch[3], 1);
  EXPECT_EQ(stretch[4], 1);
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
