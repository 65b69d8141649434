#include "machine/cpus.h"

#include <gtest/gtest.h>

#include <cmath>

#include "support/temporary_folder.h"

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
    if (cpu == 6) continue;  // the kernel does not say
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
  EXPECT_EQ(cpu_model_in("processor\t: 0\nmodel\t\t: 17\nmodel name\t: AMD EPYC 9654\nmodel name\t: other\n"),
            "AMD EPYC 9654");
  EXPECT_EQ(cpu_model_in("CPU implementer\t: 0x41\nCPU part\t: 0xd4f\n"), "Arm implementer 0x41 part 0xd4f");
  EXPECT_EQ(cpu_model_in("model name\t:\n"), "unknown CPU");
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

TEST(CpuUse, CpuTimesAreThoseOfTheCpusAskedFor) {
  const CpuTimes one = cpu_times(four_cpus, set_of({0}), 100);
  EXPECT_DOUBLE_EQ(one.busy_s, 1.58);  // user, nice, system, irq, softirq; guest time is part of user
  EXPECT_DOUBLE_EQ(one.steal_s, 0.08);
  EXPECT_DOUBLE_EQ(one.all_s, 10.71);
  const CpuTimes two = cpu_times(four_cpus, set_of({0, 1}), 100);
  EXPECT_DOUBLE_EQ(two.busy_s, 3.58);
  EXPECT_DOUBLE_EQ(two.all_s, 20.71);
  EXPECT_DOUBLE_EQ(cpu_times(four_cpus, set_of({10}), 1000).busy_s, 0.025);
}

TEST(CpuUse, WhatIsNotThereIsNotKnown) {
  for (const char* text : {"", "cpu  1 2 3 4 5 6 7 8\n", "cpu0 1 2 x 4 5 6 7 8\n", "cpu0 1 2 -3 4 5 6 7 8", "\n\n",
                           "cpux 1 2 3 4 5 6 7 8\n"}) {
    EXPECT_TRUE(std::isnan(cpu_times(text, set_of({0}), 100).busy_s)) << text;
  }
  EXPECT_TRUE(std::isnan(cpu_times(four_cpus, set_of({0, 2}), 100).busy_s));  // a CPU that has no line
  EXPECT_TRUE(std::isnan(cpu_times(four_cpus, set_of({3}), 100).all_s));      // an old kernel: no column for steal
  EXPECT_TRUE(std::isnan(cpu_times(four_cpus, {}, 100).busy_s));
}

TEST(CpuUse, IsReadFromTheKernelsFiles) {
  const test::TemporaryFolder root;
  EXPECT_TRUE(std::isnan(cpu_times_now(set_of({0}), root.path()).busy_s));
  root.write("proc/stat", four_cpus);
  EXPECT_GT(cpu_times_now(set_of({0, 1}), root.path()).busy_s, 0);
  EXPECT_TRUE(std::isnan(load_of_last_minute(root.path())));
  root.write("proc/loadavg", "high 1 2\n");
  EXPECT_TRUE(std::isnan(load_of_last_minute(root.path())));
  root.write("proc/loadavg", "5.27 3.99 3.29 7/131 32705\n");
  EXPECT_DOUBLE_EQ(load_of_last_minute(root.path()), 5.27);
}

TEST(CpuUse, ClocksAreAMeanOverTheCpus) {
  const test::TemporaryFolder root;
  const auto clock = [&](const std::string& cpu, const std::string& khz) {
    root.write("sys/devices/system/cpu/cpu" + cpu + "/cpufreq/scaling_cur_freq", khz + "\n");
  };
  EXPECT_TRUE(std::isnan(mean_clock_hz({}, root.path())));
  EXPECT_TRUE(std::isnan(mean_clock_hz(set_of({0}), root.path())));
  clock("0", "2000000");
  clock("1", "3000000");
  EXPECT_DOUBLE_EQ(mean_clock_hz(set_of({0, 1}), root.path()), 2.5e9);
  clock("1", "<unknown>");
  EXPECT_TRUE(std::isnan(mean_clock_hz(set_of({0, 1}), root.path())));
}

}  // namespace
}  // namespace harness::machine
