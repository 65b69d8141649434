#include "launch/site.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <ctime>

#include "launch/test_fault.h"

namespace harness::launch {
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
  const Share share = share_of(node(8, 4, 1), 1000, 0, 0);
  EXPECT_EQ(share.local_rank, 1);
  EXPECT_EQ(share.local_ranks, 4);
  EXPECT_EQ(share.threads, 2);
  EXPECT_EQ(listed(share.cpus), (std::vector<int>{2, 3, 10, 11}));
  EXPECT_DOUBLE_EQ(share.memory_limit_bytes, 0.9 * 100e9 / 4);
  const Share half = share_of(node(8, 4, 1), 10, 0, 5e9);
  EXPECT_EQ(half.local_ranks, 2);
  EXPECT_EQ(half.threads, 4);
  EXPECT_EQ(listed(half.cpus).size(), 8u);
  EXPECT_EQ(half.memory_limit_bytes, 5e9);
}

TEST(Share, TooManyThreadsShareAllCores) {
  const Share share = share_of(node(2, 4, 3), 1000, 0, 0);
  EXPECT_EQ(share.threads, 1);
  EXPECT_EQ(listed(share.cpus), (std::vector<int>{0, 1, 2, 3}));
  EXPECT_EQ(listed(share_of(node(8, 2, 0), 1000, 5, 0).cpus).size(), 16u);
}

TEST(Share, UnderAQuotaNobodyIsBound) {
  Site site = node(8, 2, 0);
  site.usable_cores = 4;
  const Share share = share_of(site, 1000, 0, 0);
  EXPECT_EQ(share.threads, 2);
  EXPECT_EQ(listed(share.cpus).size(), 16u);
}

TEST(TestFaults, ConcernOneRankAndCase) {
  const std::string text = "rank=1,step=3,kind=segfault,case=layout=2";
  EXPECT_EQ(TestFault::parse(text, 1, "layout=2").kind(), "segfault");
  EXPECT_EQ(TestFault::parse(text, 0, "layout=2").kind(), "");
  EXPECT_EQ(TestFault::parse(text, 1, "baseline").kind(), "");
  const std::string delays =
      "kind=delay,step=every,seconds=0.5,unless=micro_batch_size:4;kind=delay,step=every,seconds=0.25";
  config::Settings settings;
  EXPECT_EQ(TestFault::parse(delays, 0, "", settings).seconds(), 0.75);
  settings.micro_batch_size = 4;
  EXPECT_EQ(TestFault::parse(delays, 0, "", settings).seconds(), 0.25);
  EXPECT_THROW(TestFault::parse("kind=exit;kind=abort", 0, ""), Error);
  EXPECT_THROW(TestFault::parse("rnk=1", 1, ""), Error);
  EXPECT_THROW(TestFault::parse("segfault", 1, ""), Error);
}

TEST(TestFaults, PretendedDelaysAddUpInWhatWasMeasured) {
  const std::string text = "kind=pretend,step=every,seconds=2;kind=pretend,step=every,seconds=3";
  measure::BlockSamples samples;
  samples.step_seconds = {0.25, 0.5, 0.5};
  samples.timed_total_seconds = 1;
  TestFault::parse(text, 0, "").pretend(samples, 2);
  EXPECT_THAT(samples.step_seconds, testing::ElementsAre(5.25, 5.5, 5.5));
  EXPECT_EQ(samples.timed_total_seconds, 11);
  TestFault::parse("kind=delay,step=every,seconds=2", 0, "").pretend(samples, 2);
  EXPECT_EQ(samples.timed_total_seconds, 11);
  EXPECT_THROW(TestFault::parse("kind=pretend,step=3", 0, ""), Error);
  EXPECT_THROW(TestFault::parse("kind=pretend,step=every;kind=delay,step=every", 0, ""), Error);
}

TEST(TestFaults, ASpinTakesItsTimeAndKeepsItsCore) {
  const auto start = std::chrono::steady_clock::now();
  const std::clock_t own = std::clock();
  TestFault::parse("kind=spin,step=-1,seconds=0.1", 0, "").act_before_steps();
  EXPECT_GE(std::chrono::steady_clock::now() - start, std::chrono::milliseconds(100));
  EXPECT_GT(static_cast<double>(std::clock() - own) / CLOCKS_PER_SEC, 0.01);
}

}  // namespace
}  // namespace harness::launch
