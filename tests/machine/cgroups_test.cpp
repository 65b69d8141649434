#include "machine/cgroups.h"

#include <gtest/gtest.h>

#include "support/temporary_folder.h"

namespace harness::machine {
namespace {

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

// The same as a process finds them under a root.
TEST_F(Cgroups, ThoseOfThisProcessAreFound) {
  put("proc/self/cgroup", "0::/job");
  put("proc/meminfo", "MemFree:  1 kB\nMemTotal:       16 kB");
  EXPECT_EQ(memory_bytes(root_.path()), 16384);
  EXPECT_EQ(limited_by_quota(8, root_.path()), 8);
  put("sys/fs/cgroup/job/memory.max", "8192");
  put("sys/fs/cgroup/job/cpu.max", "250000 100000");
  EXPECT_EQ(memory_bytes(root_.path()), 8192);
  EXPECT_EQ(limited_by_quota(8, root_.path()), 3);
  EXPECT_EQ(limited_by_quota(2, root_.path()), 2);
  EXPECT_GT(memory_bytes(), 1e6);
}

}  // namespace
}  // namespace harness::machine
