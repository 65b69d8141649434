#include "job/mpi/site.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace harness::mpi {
namespace {

// A node with `cores` cores of two logical CPUs each, as its rank `rank` of `ranks` sees it; its ranks start at 8.
Site node(int cores, int ranks, int rank) {
  Site site;
  for (int core = 0; core < cores; ++core) site.cores.push_back({core, core + cores});
  for (int i = 0; i < ranks; ++i) site.node_ranks.push_back(8 + i);
  site.rank = 8 + rank;
  site.usable_cores = cores;
  site.memory_bytes = 100e9;
  return site;
}

std::vector<int> listed(const machine::CpuSet& cpus) {
  std::vector<int> list;
  for (std::size_t i = 0; i < cpus.size(); ++i) {
    if (cpus[i]) list.push_back(static_cast<int>(i));
  }
  return list;
}

TEST(Share, CoresAndMemoryAreDividedAmongTheRanksThatTakePart) {
  const Share share = share_of(node(8, 4, 1), Members(1000), 0, 0);
  EXPECT_EQ(share.local_rank, 1);
  EXPECT_EQ(share.local_ranks, 4);
  EXPECT_EQ(share.threads, 2);
  EXPECT_EQ(listed(share.cpus), (std::vector<int>{2, 3, 10, 11}));
  EXPECT_DOUBLE_EQ(share.memory_limit_bytes, 0.9 * 100e9 / 4);
  const Share half = share_of(node(8, 4, 1), Members(10), 0, 5e9);
  EXPECT_EQ(half.local_ranks, 2);
  EXPECT_EQ(half.threads, 4);
  EXPECT_EQ(listed(half.cpus).size(), 8u);
  EXPECT_EQ(half.memory_limit_bytes, 5e9);
}

TEST(Share, TooManyThreadsShareAllCores) {
  const Share share = share_of(node(2, 4, 3), Members(1000), 0, 0);
  EXPECT_EQ(share.threads, 1);
  EXPECT_EQ(listed(share.cpus), (std::vector<int>{0, 1, 2, 3}));
  EXPECT_EQ(listed(share_of(node(8, 2, 0), Members(1000), 5, 0).cpus).size(), 16u);
}

TEST(Share, UnderAQuotaNobodyIsBound) {
  Site site = node(8, 2, 0);
  site.usable_cores = 4;
  const Share share = share_of(site, Members(1000), 0, 0);
  EXPECT_EQ(share.threads, 2);
  EXPECT_EQ(listed(share.cpus).size(), 16u);
}

}  // namespace
}  // namespace harness::mpi
