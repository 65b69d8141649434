#include "machine/cpus.h"

#include <gtest/gtest.h>

#include <filesystem>

#include "support/temporary_folder.h"

namespace harness::machine {
namespace {

class Cgroups : public ::testing::Test {
 protected:
  void put(const std::string& file, const std::string& text) const { root_.write(file, text + "\n"); }
  void group(const std::string& file, const std::string& text) const { put("sys/fs/cgroup/" + file, text); }
  GroupLimit quota() const { return cpu_quota(Tree(root_.path())); }
  GroupLimit memory() const { return memory_limit(Tree(root_.path())); }
  const test::TemporaryFolder root_;
};

TEST_F(Cgroups, VersionTwoLimitsOfAllParentsCount) {
  put("proc/self/cgroup", "0::/a/b");
  group("a/b/memory.max", "max");
  group("a/memory.max", "4294967296");
  group("a/b/cpu.max", "150000 100000");
  group("a/cpu.max", "max 100000");
  EXPECT_EQ(memory().value, 4294967296.0);
  EXPECT_EQ(quota().value, 1.5);
  EXPECT_EQ(quota().access, Access::read);
}

// Controllers of version 1 are mounted under one of their names or under all.
TEST_F(Cgroups, VersionOneLimitsCountWhereverTheyAreMounted) {
  put("proc/self/cgroup", "4:memory:/job\n3:cpu,cpuacct:/job\n1:name=systemd:/\n0::/");
  group("memory/job/memory.limit_in_bytes", "1073741824");
  group("cpu/job/cpu.cfs_quota_us", "50000");
  group("cpu/job/cpu.cfs_period_us", "100000");
  EXPECT_EQ(memory().value, 1073741824.0);
  EXPECT_EQ(quota().value, 0.5);
  std::filesystem::rename(root_ / "sys/fs/cgroup/cpu", root_ / "sys/fs/cgroup/cpu,cpuacct");
  EXPECT_EQ(quota().value, 0.5);
  put("proc/self/cgroup", "3:cpuset,cpuacct:/job\n0::/");  // another controller's
  EXPECT_EQ(quota().value, 0);
  EXPECT_EQ(quota().access, Access::read);
}

// Both at once, as systemd has them: version 2 without the controller, or with a looser limit.
TEST_F(Cgroups, TheSmallerOfBothVersionsCounts) {
  put("proc/self/cgroup", "3:cpu:/job\n0::/job");
  group("cpu/job/cpu.cfs_quota_us", "300000");
  group("cpu/job/cpu.cfs_period_us", "100000");
  group("unified/job/cpu.max", "200000 100000");
  EXPECT_EQ(quota().value, 2);
  group("unified/job/cpu.max", "max 100000");
  EXPECT_EQ(quota().value, 3);
}

TEST_F(Cgroups, AbsentAndUnreadableAreToldApart) {
  EXPECT_EQ(quota().access, Access::absent);
  put("proc/self/cgroup", "0::/job");
  EXPECT_EQ(quota().access, Access::unreadable);
  std::filesystem::create_directories(root_ / "sys/fs/cgroup");
  EXPECT_EQ(quota().access, Access::read);
  for (const char* odd : {"garbage", "", "0", "0 0", "-5", "inf 100000", "nan", "1e999", "100000 0", "max x"}) {
    group("job/cpu.max", odd);
    EXPECT_EQ(quota().value, 0) << odd;
  }
  group("cpu.max", "250000 100000");
  EXPECT_EQ(quota().value, 2.5);
}

// The limits as a process finds them under a root.
TEST_F(Cgroups, ThoseOfThisProcessAreFound) {
  put("proc/self/cgroup", "0::/job");
  put("proc/meminfo", "MemFree:  1 kB\nMemTotal:       16 kB");
  EXPECT_EQ(memory_bytes(root_.path()), 16384);
  EXPECT_EQ(limited_by_quota(8, root_.path()), 8);
  group("job/memory.max", "8192");
  group("job/cpu.max", "250000 100000");
  EXPECT_EQ(memory_bytes(root_.path()), 8192);
  EXPECT_EQ(limited_by_quota(8, root_.path()), 3);
  EXPECT_EQ(limited_by_quota(2, root_.path()), 2);
  EXPECT_GT(memory_bytes(), 1e6);
}

}  // namespace
}  // namespace harness::machine
