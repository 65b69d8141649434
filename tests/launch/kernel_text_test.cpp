#include "launch/kernel_text.h"

#include <gtest/gtest.h>

#include <cmath>

namespace harness::launch {
namespace {

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

TEST(KernelText, CpuTimesAreThoseOfTheCpusAskedFor) {
  const CpuTimes one = cpu_times(four_cpus, set_of({0}), 100);
  EXPECT_DOUBLE_EQ(one.busy_s, 1.58);  // user, nice, system, irq, softirq; guest time is part of user
  EXPECT_DOUBLE_EQ(one.steal_s, 0.08);
  EXPECT_DOUBLE_EQ(one.all_s, 10.71);
  const CpuTimes two = cpu_times(four_cpus, set_of({0, 1}), 100);
  EXPECT_DOUBLE_EQ(two.busy_s, 3.58);
  EXPECT_DOUBLE_EQ(two.all_s, 20.71);
  EXPECT_DOUBLE_EQ(cpu_times(four_cpus, set_of({10}), 1000).busy_s, 0.025);
}

TEST(KernelText, WhatIsNotThereIsNotKnown) {
  for (const char* text : {"", "cpu  1 2 3 4 5 6 7 8\n", "cpu0 1 2 x 4 5 6 7 8\n", "cpu0 1 2 -3 4 5 6 7 8", "\n\n",
                           "cpux 1 2 3 4 5 6 7 8\n"}) {
    EXPECT_TRUE(std::isnan(cpu_times(text, set_of({0}), 100).busy_s)) << text;
  }
  EXPECT_TRUE(std::isnan(cpu_times(four_cpus, set_of({0, 2}), 100).busy_s));  // a CPU that has no line
  EXPECT_TRUE(std::isnan(cpu_times(four_cpus, set_of({3}), 100).all_s));      // an old kernel: no column for steal
  EXPECT_TRUE(std::isnan(cpu_times(four_cpus, {}, 100).busy_s));
}

TEST(KernelText, LoadAndClock) {
  EXPECT_DOUBLE_EQ(load_of_last_minute("5.27 3.99 3.29 7/131 32705\n"), 5.27);
  EXPECT_TRUE(std::isnan(load_of_last_minute("")));
  EXPECT_TRUE(std::isnan(load_of_last_minute("high 1 2")));
  EXPECT_DOUBLE_EQ(clock_hz("2400000\n"), 2.4e9);
  EXPECT_TRUE(std::isnan(clock_hz("<unknown>\n")));
}

}  // namespace
}  // namespace harness::launch
