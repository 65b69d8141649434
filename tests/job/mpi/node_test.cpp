#include "job/mpi/node.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <vector>

namespace harness::mpi {
namespace {

// A node with `cores` cores of two logical CPUs each, seen by its rank `rank` of `ranks`. Ranks start at 8.
Site node(int cores, int ranks, int rank) {
  Site site;
  for (int core = 0; core < cores; ++core) site.cores.push_back({core, core + cores});
  for (int i = 0; i < ranks; ++i) site.node_ranks.push_back(8 + i);
  site.place.rank = 8 + rank;
  site.place.cores = cores;
  site.place.memory_bytes = 100e9;
  site.place.host = "node7";
  return site;
}

job::BlockRequest asking(int threads, double memory_limit_bytes = 0) {
  job::BlockRequest request;
  request.backend = config::BackendKind::cpu;
  request.settings.threads = threads;
  request.memory_limit_bytes = memory_limit_bytes;
  return request;
}
const job::BlockRequest usual = asking(0);

std::string listed(const Share& share) {
  return machine::list_of(share.cpus);
}

TEST(Share, CoresAndMemoryAreDividedAmongTheRanksThatTakePart) {
  const Share share = share_of(node(8, 4, 1), Members(1000), usual);
  EXPECT_EQ(share.local_rank, 1);
  EXPECT_EQ(share.local_ranks, 4);
  EXPECT_EQ(share.threads, 2);
  EXPECT_EQ(listed(share), "2-3,10-11");
  EXPECT_DOUBLE_EQ(share.memory_limit_bytes, 0.9 * 100e9 / 4);
  const Share half = share_of(node(8, 4, 1), Members(10), asking(0, 5e9));
  EXPECT_EQ(half.local_ranks, 2);
  EXPECT_EQ(half.threads, 4);
  EXPECT_EQ(half.cpus.count(), 8u);
  EXPECT_EQ(half.memory_limit_bytes, 5e9);
}

TEST(Share, DataLoadersTakeTheirThreadsFromThoseThatCompute) {
  job::BlockRequest request = usual;
  request.settings.data_file = "tokens.bin";
  request.settings.loader_workers = 3;
  EXPECT_EQ(share_of(node(8, 2, 0), Members(1000), request).threads, 1);
  EXPECT_EQ(share_of(node(8, 1, 0), Members(1000), request).threads, 5);
  EXPECT_EQ(share_of(node(2, 2, 0), Members(1000), request).threads, 1);
  request.settings.threads = 4;
  EXPECT_EQ(share_of(node(8, 1, 0), Members(1000), request).threads, 4);
}

TEST(Share, TooManyThreadsShareAllCores) {
  const Share share = share_of(node(2, 4, 3), Members(1000), usual);
  EXPECT_EQ(share.threads, 1);
  EXPECT_EQ(listed(share), "0-3");
  EXPECT_EQ(share_of(node(8, 2, 0), Members(1000), asking(5)).cpus.count(), 16u);
}

TEST(Share, UnderAQuotaNobodyIsBoundUnasked) {
  Site site = node(8, 2, 0);
  site.place.cores = 4;
  const Share share = share_of(site, Members(1000), usual);
  EXPECT_EQ(share.threads, 2);
  EXPECT_EQ(share.cpus.count(), 16u);
}

// A worker with a GPU binds itself, using all CPUs of the job.
TEST(Share, OfAGpuItHasAllCpusAndNoLimitOfItsOwn) {
  job::BlockRequest request = usual;
  request.backend = config::BackendKind::cuda;
  const Share share = share_of(node(8, 4, 1), Members(1000), request);
  EXPECT_EQ(listed(share), "0-15");
  EXPECT_EQ(share.memory_limit_bytes, 0);
  request.memory_limit_bytes = 5e9;
  EXPECT_EQ(share_of(node(8, 4, 1), Members(1000), request).memory_limit_bytes, 5e9);
}

TEST(Share, IsInPlaceForAWhile) {
  const machine::CpuSet before = machine::bound_cpus();
  Share share;
  for (std::size_t cpu = 0; share.cpus.none(); ++cpu) share.cpus[cpu] = before[cpu];
  {
    const InPlace in_place(share);
    EXPECT_EQ(machine::bound_cpus(), share.cpus);
  }
  EXPECT_EQ(machine::bound_cpus(), before);
}

// The resolution of the clock, in cores: 16 CPUs over 10 s, ticks of 0.01 s.
const double ticks = 8 * std::sqrt(16 * 10 * 0.01) / (10 * 16);

// The report of the first supervisor of a node with 8 cores of two CPUs each, after 10 s.
NodeReport watcher(int node, const char* host, double busy_s, double own_s) {
  NodeReport report;
  report.node = node;
  report.cores = 8;
  report.cpus = 16;
  report.own_s = own_s;
  report.wall_s = 10;
  report.busy_s = busy_s;
  report.steal_share = 0.01 * node;
  report.host = host;
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
  EXPECT_DOUBLE_EQ(worst.steal_share, 0.02);
}

TEST(NodeWatch, TheClocksOfTheKernelMayDifferButNothingIsBelowZero) {
  EXPECT_EQ(worst_of(std::vector{watcher(0, "a", 19.9, 20)}).foreign_cores, 0);
}

// Two ticks of 0.01 s on either CPU, half of them by the own processes: no foreign process need have run.
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
  silent.steal_share = NodeReport::nan;
  const machine::Conditions unknown = worst_of(std::vector{silent, other(0, 1)});
  EXPECT_TRUE(std::isnan(unknown.foreign_cores));
  EXPECT_TRUE(std::isnan(unknown.steal_share));
  EXPECT_EQ(unknown.busiest_host, "");
  // A worker whose end was missed hides foreign use only on its own node.
  const std::vector<NodeReport> half = {watcher(0, "a", 60, 20), other(0, NodeReport::nan), watcher(2, "b", 10, 5)};
  EXPECT_NEAR(worst_of(half).foreign_cores, 0.25 - ticks, 1e-9);
  EXPECT_EQ(worst_of({}).busiest_host, "");
}

}  // namespace
}  // namespace harness::mpi
