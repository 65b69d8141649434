#include "job/mpi/node_watch.h"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "job/mpi/fault.h"

namespace harness::mpi {
namespace {

// 0.08 cores that ticks of the clock may be off in 10 s of 16 CPUs.
const double ticks = 8 * std::sqrt(16 * 10 * 0.01) / (10 * 16);

// The first supervisor of a node with 8 cores of two CPUs each, after 10 s.
NodeReport watcher(int node, const char* host, double busy_s, double own_s) {
  NodeReport report;
  report.node = node;
  report.cores = 8;
  report.cpus = 16;
  report.own_s = own_s;
  report.wall_s = 10;
  report.busy_s = busy_s;
  report.steal_share = 0.01 * node;
  report.load = 3 + node;
  report.clock_hz = 3e9 - 1e8 * node;
  set_text(report.host, host);
  return report;
}

NodeReport other(int node, double own_s) {
  NodeReport report;
  report.node = node;
  report.own_s = own_s;
  return report;
}

TEST(NodeWatch, ForeignIsWhatIsBusyBeyondTheOwnOfAllRanksOfTheNode) {
  const std::vector<NodeReport> reports = {watcher(0, "a", 60, 20), other(0, 20), watcher(2, "b", 100, 25),
                                           other(2, 25)};
  const machine::Conditions worst = worst_of(reports);
  EXPECT_NEAR(worst.foreign_cores, 2.5 - ticks, 1e-9);  // 5 of b's 16 CPUs
  EXPECT_EQ(worst.busiest_host, "b");
  EXPECT_EQ(worst.cores, 8);
  EXPECT_DOUBLE_EQ(worst.load, 5);
  EXPECT_DOUBLE_EQ(worst.steal_share, 0.02);
  EXPECT_DOUBLE_EQ(worst.cpu_clock_hz, 2.8e9);
}

TEST(NodeWatch, TheClocksOfTheKernelMayDifferButNothingIsBelowZero) {
  EXPECT_EQ(worst_of(std::vector{watcher(0, "a", 19.9, 20)}).foreign_cores, 0);
}

// Two ticks of 0.01 s on either CPU, where the own processes took half of them: nobody else need have been there.
TEST(NodeWatch, WhatTicksMayBeOffIsNotForeign) {
  NodeReport brief = watcher(0, "a", 0.04, 0.02);
  brief.cores = brief.cpus = 2;
  brief.wall_s = 0.03;
  EXPECT_EQ(worst_of(std::vector{brief}).foreign_cores, 0);
  brief.busy_s = 0.06;
  EXPECT_NEAR(worst_of(std::vector{brief}).foreign_cores, (0.04 - std::sqrt(2 * 0.03 * 0.01)) / 0.03, 1e-9);
}

TEST(NodeWatch, WhatANodeDoesNotTellIsNotKnown) {
  NodeReport silent = watcher(0, "a", NodeReport::nan, 1);
  silent.load = silent.steal_share = silent.clock_hz = NodeReport::nan;
  const machine::Conditions unknown = worst_of(std::vector{silent, other(0, 1)});
  EXPECT_TRUE(std::isnan(unknown.foreign_cores));
  EXPECT_TRUE(std::isnan(unknown.load));
  EXPECT_TRUE(std::isnan(unknown.cpu_clock_hz));
  EXPECT_EQ(unknown.busiest_host, "");
  // A worker whose end was not seen hides the foreign use of its own node alone.
  const std::vector<NodeReport> half = {watcher(0, "a", 60, 20), other(0, NodeReport::nan), watcher(2, "b", 10, 5)};
  EXPECT_NEAR(worst_of(half).foreign_cores, 0.25 - ticks, 1e-9);
  EXPECT_EQ(worst_of({}).cores, 0);
}

}  // namespace
}  // namespace harness::mpi
