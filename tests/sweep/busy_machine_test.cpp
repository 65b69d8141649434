#include "sweep/busy_machine.h"

#include <gtest/gtest.h>

namespace harness::sweep {
namespace {

TEST(BusyMachine, IsNamedWithNumbers) {
  machine::Conditions conditions;
  EXPECT_EQ(busy_machine(conditions), "");  // the kernel does not tell
  conditions.cores = 2;
  conditions.busiest_host = "node7";
  conditions.steal_share = 0;
  conditions.foreign_cores = 0.19;
  EXPECT_EQ(busy_machine(conditions), "");
  conditions.foreign_cores = 1.4;
  EXPECT_EQ(busy_machine(conditions),
            "this machine is busy: other processes keep 1.4 of 2 cores busy on node7; verdicts will be less sharp");
  conditions.steal_share = 0.07;
  EXPECT_EQ(
      busy_machine(conditions),
      "this machine is busy: other processes keep 1.4 of 2 cores busy on node7, and its host gives 7 % of its CPU "
      "time to other guests; verdicts will be less sharp");
  conditions.foreign_cores = 0;
  EXPECT_EQ(busy_machine(conditions),
            "this machine is busy: its host gives 7 % of its CPU time to other guests; verdicts will be less sharp");
}

}  // namespace
}  // namespace harness::sweep
