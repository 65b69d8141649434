#include "launch/site.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <ctime>

#include "launch/test_fault.h"
#include "support/temporary_folder.h"

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

std::vector<int> listed(const CpuSet& cpus) {
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

class Cgroups : public ::testing::Test {
 protected:
  void put(const std::string& file, const std::string& text) const { root_.write(file, text + "\n"); }
  const test::TemporaryFolder root_;
};

TEST_F(Cgroups, VersionTwoLimitsOfAllParentsCount) {
  put("a/b/memory.max", "max");
  put("a/memory.max", "4294967296");
  put("a/b/cpu.max", "150000 100000");
  put("a/cpu.max", "max 100000");
  EXPECT_EQ(smallest_memory_limit("0::/a/b\n", root_.path()), 4294967296.0);
  EXPECT_EQ(smallest_cpu_quota("0::/a/b\n", root_.path()), 1.5);
}

TEST_F(Cgroups, VersionOneLimitsCount) {
  put("memory/job/memory.limit_in_bytes", "1073741824");
  put("cpu,cpuacct/job/cpu.cfs_quota_us", "200000");
  put("cpu,cpuacct/job/cpu.cfs_period_us", "100000");
  const std::string text = "4:memory:/job\n3:cpu,cpuacct:/job\n1:name=systemd:/\n0::/\n";
  EXPECT_EQ(smallest_memory_limit(text, root_.path()), 1073741824.0);
  EXPECT_EQ(smallest_cpu_quota(text, root_.path()), 2.0);
}

TEST_F(Cgroups, NoLimitIsNoLimit) {
  put("cpu/cpu.cfs_quota_us", "-1");
  put("cpu/cpu.cfs_period_us", "100000");
  EXPECT_EQ(smallest_cpu_quota("1:cpu:/gone\n", root_.path()), 0);
  EXPECT_EQ(smallest_memory_limit("0::/\n", root_.path()), 0);
}

TEST(Machine, KnowsItself) {
  EXPECT_GT(memory_bytes(), 1e6);
  EXPECT_FALSE(host_name().empty());
  EXPECT_FALSE(cpu_model().empty());
  const CpuSet before = bound_cpus();
  EXPECT_TRUE(before.any());
  EXPECT_EQ((allowed_cpus() & before), before);
  EXPECT_EQ(bound_cpus(), before);
  EXPECT_FALSE(cores_of(before).empty());
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
