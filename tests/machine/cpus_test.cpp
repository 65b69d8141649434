#include "machine/cpus.h"

#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>

#include "support/files.h"

namespace harness::machine {
namespace {

TEST(Cpus, OfThisProcess) {
  const CpuSet before = bound_cpus();
  EXPECT_TRUE(before.any());
  EXPECT_EQ((allowed_cpus() & before), before);
  EXPECT_EQ(bound_cpus(), before);
  EXPECT_FALSE(cores_of(before).empty());
}

TEST(Cpus, ThoseOfACoreStandTogether) {
  const test::TemporaryFolder root;
  CpuSet cpus;
  for (const int cpu : {0, 1, 2, 4, 6}) {
    cpus.set(static_cast<std::size_t>(cpu));
    if (cpu == 6) continue;  // the kernel does not report it
    root.write("sys/devices/system/cpu/cpu" + std::to_string(cpu) + "/topology/thread_siblings_list",
               cpu % 4 == 0 ? "0,4\n" : std::to_string(cpu) + "," + std::to_string(cpu + 4) + "\n");
  }
  EXPECT_EQ(cores_of(cpus, root.path()), (std::vector<std::vector<int>>{{0, 4}, {1}, {2}, {6}}));
}

TEST(Cpus, AreListedByTheKernel) {
  const auto count = [](std::string_view list) { return cpus_in(list).count(); };
  EXPECT_EQ(count("0-31,64-95"), 64u);
  EXPECT_TRUE(cpus_in("0-31,64-95")[64]);
  EXPECT_EQ(count("7"), 1u);
  EXPECT_EQ(count("5-3"), 0u);
  EXPECT_EQ(count("1,x,3"), 1u);
  EXPECT_EQ(count("8190-9999"), 2u);
  EXPECT_EQ(count(""), 0u);
}

TEST(Cpus, AreListedAsTheKernelDoes) {
  for (const char* list : {"", "7", "0-31,64-95", "1,3,5-6", "8191"}) EXPECT_EQ(list_of(cpus_in(list)), list);
}

TEST(Cpus, NearADeviceAreThoseThatTheKernelNames) {
  const test::TemporaryFolder root;
  root.write("sys/bus/pci/devices/0000:2b:00.0/local_cpulist", "4-7,12-15\n");
  EXPECT_EQ(list_of(cpus_near("0000:2B:00.0", root.path())), "4-7,12-15");
  EXPECT_TRUE(cpus_near("0000:1c:00.0", root.path()).none());
}

TEST(Cpus, TheirModelIsNamed) {
  const test::TemporaryFolder root;
  const auto model = [&](const char* cpuinfo) {
    root.write("proc/cpuinfo", cpuinfo);
    return cpu_model(root.path());
  };
  EXPECT_EQ(model("processor\t: 0\nmodel\t\t: 17\nmodel name\t: AMD EPYC 9654\nmodel name\t: other\n"),
            "AMD EPYC 9654");
  EXPECT_EQ(model("CPU implementer\t: 0x41\nCPU part\t: 0xd4f\n"), "Arm implementer 0x41 part 0xd4f");
  EXPECT_EQ(model("model name\t:\n"), "unknown CPU");
  EXPECT_EQ(cpu_model("/nowhere"), "unknown CPU");
  EXPECT_FALSE(cpu_model().empty());
}

constexpr const char* four_cpus =
    "cpu  1000 200 300 9000 50 6 70 80 0 0\n"
    "cpu0 100 20 30 900 5 1 7 8 40 0\n"
    "cpu1 200 0 0 800 0 0 0 0 0 0\n"
    "cpu10 5 5 5 5 5 5 5 5 0 0\n"
    "cpu3 1 2 3 4 5 6 7\n"
    "intr 1 2 3\n"
    "ctxt 4\n";

CpuSet set_of(std::initializer_list<int> cpus) {
  CpuSet set;
  for (const int cpu : cpus) set.set(static_cast<std::size_t>(cpu));
  return set;
}

// Times from the kernel's ticks, 100 a second on every machine.
CpuTimes times_in(const char* proc_stat, const CpuSet& cpus) {
  const test::TemporaryFolder root;
  root.write("proc/stat", proc_stat);
  return cpu_times_now(cpus, root.path());
}

TEST(CpuUse, CpuTimesAreThoseOfTheCpusAskedFor) {
  const CpuTimes one = times_in(four_cpus, set_of({0}));
  EXPECT_DOUBLE_EQ(one.busy_s, 1.58);  // user, nice, system, irq, softirq; guest time is part of user
  EXPECT_DOUBLE_EQ(one.steal_s, 0.08);
  EXPECT_DOUBLE_EQ(one.all_s, 10.71);
  const CpuTimes two = times_in(four_cpus, set_of({0, 1}));
  EXPECT_DOUBLE_EQ(two.busy_s, 3.58);
  EXPECT_DOUBLE_EQ(two.all_s, 20.71);
  EXPECT_DOUBLE_EQ(times_in(four_cpus, set_of({10})).busy_s, 0.25);
}

TEST(CpuUse, WhatIsNotThereIsNotKnown) {
  for (const char* text : {"", "cpu  1 2 3 4 5 6 7 8\n", "cpu0 1 2 x 4 5 6 7 8\n", "cpu0 1 2 -3 4 5 6 7 8", "\n\n",
                           "cpux 1 2 3 4 5 6 7 8\n"}) {
    EXPECT_TRUE(std::isnan(times_in(text, set_of({0})).busy_s)) << text;
  }
  EXPECT_TRUE(std::isnan(times_in(four_cpus, set_of({0, 2})).busy_s));  // a CPU without a line
  EXPECT_TRUE(std::isnan(times_in(four_cpus, set_of({3})).all_s));      // an old kernel without a steal column
  EXPECT_TRUE(std::isnan(times_in(four_cpus, {}).busy_s));
  EXPECT_TRUE(std::isnan(cpu_times_now(set_of({0}), "/nowhere").busy_s));
}

// ---- The limits of control groups.

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

// Controllers of version 1 are mounted under one of their names or under all of them.
TEST_F(Cgroups, VersionOneLimitsCountWhereverTheyAreMounted) {
  put("proc/self/cgroup", "4:memory:/job\n3:cpu,cpuacct:/job\n1:name=systemd:/\n0::/");
  group("memory/job/memory.limit_in_bytes", "1073741824");
  group("cpu/job/cpu.cfs_quota_us", "50000");
  group("cpu/job/cpu.cfs_period_us", "100000");
  EXPECT_EQ(memory().value, 1073741824.0);
  EXPECT_EQ(quota().value, 0.5);
  std::filesystem::rename(root_ / "sys/fs/cgroup/cpu", root_ / "sys/fs/cgroup/cpu,cpuacct");
  EXPECT_EQ(quota().value, 0.5);
  put("proc/self/cgroup", "3:cpuset,cpuacct:/job\n0::/");  // the limit of another controller
  EXPECT_EQ(quota().value, 0);
  EXPECT_EQ(quota().access, Access::read);
}

// Both versions at once, as under systemd: version 2 without the controller, or with a looser limit.
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

// The limits as a process finds them below a root.
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
