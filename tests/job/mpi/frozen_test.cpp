// A rank whose process is frozen for good (SIGSTOP), which to the others is like one whose node or network is gone.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>

#include <chrono>
#include <thread>

#include "launched.h"
#include "support/wait.h"

namespace harness::mpi {
namespace {

using test::Launched;
using ::testing::AnyOf;
using ::testing::HasSubstr;
using ::testing::Not;

class Frozen : public ::testing::TestWithParam<int> {};

INSTANTIATE_TEST_SUITE_P(Ranks, Frozen, ::testing::Range(0, 3), ::testing::PrintToStringParamName());

std::string missed(int rank) {
  return "rank " + std::to_string(rank) + " on ";
}

void expect_ended(Launched& job, int rank) {
  ASSERT_TRUE(job.wait()) << job.output();  // and nothing is left, the frozen process neither
  EXPECT_NE(job.exit_code(), 0);
  EXPECT_THAT(job.output(), HasSubstr("harness: " + missed(rank)));
  EXPECT_THAT(job.output(),
              HasSubstr(" has not answered for 15 s: its process is frozen, or its node or network is down"));
}

TEST_P(Frozen, IsMissedDuringABlock) {
  Launched job(3, "steps=100000 step=1000");
  ASSERT_TRUE(job.says("begin 0")) << job.output();
  ASSERT_TRUE(test::wait_until([&] { return job.processes("worker").size() == 3; }));
  ::kill(job.supervisor(GetParam()), SIGSTOP);
  expect_ended(job, GetParam());
}

// The others wait for the orders of rank 0, which does something of its own.
TEST_P(Frozen, IsMissedBetweenBlocks) {
  Launched job(3, "blocks=2 steps=1 pause=20");
  ASSERT_TRUE(job.says("pause 0")) << job.output();
  ::kill(job.supervisor(GetParam()), SIGSTOP);
  expect_ended(job, GetParam());
}

TEST(Frozen, ASecondSignalNeedsNobodyElse) {
  Launched job(2, "steps=100000 step=1000");
  ASSERT_TRUE(job.says("begin 0")) << job.output();
  ASSERT_TRUE(test::wait_until([&] { return job.processes("worker").size() == 2; }));
  ::kill(job.supervisor(1), SIGSTOP);
  for (int times = 0; times < 2; ++times) {
    ::kill(job.supervisor(0), SIGINT);
    std::this_thread::sleep_for(std::chrono::milliseconds(400));
  }
  ASSERT_TRUE(job.wait()) << job.output();
  EXPECT_NE(job.exit_code(), 0);
  EXPECT_THAT(job.output(), HasSubstr("stopped by a signal, though other ranks of the job do not answer"));
}

TEST(Frozen, ARankThatIsBusyIsNot) {
  Launched job(3, "blocks=2 steps=1 pause=25");
  ASSERT_TRUE(job.wait()) << job.output();
  EXPECT_EQ(job.exit_code(), 0) << job.output();
  EXPECT_THAT(job.output(), HasSubstr("block 1 ok true"));
}

// Ctrl-Z, a batch system that suspends jobs, a laptop that sleeps.
TEST(Frozen, AJobThatIsSuspendedAsAWholeGoesOn) {
  Launched job(3, "blocks=2 steps=300 step=1000");
  ASSERT_TRUE(job.says("begin 0")) << job.output();
  ASSERT_TRUE(test::wait_until([&] { return job.processes("worker").size() == 3; }));
  const std::vector<pid_t> all = job.processes("");
  for (const pid_t pid : all) ::kill(pid, SIGSTOP);
  std::this_thread::sleep_for(std::chrono::seconds(25));
  for (const pid_t pid : all) ::kill(pid, SIGCONT);
  ASSERT_TRUE(job.wait()) << job.output();
  EXPECT_EQ(job.exit_code(), 0) << job.output();
  EXPECT_THAT(job.output(), HasSubstr("block 1 ok true"));
}

}  // namespace
}  // namespace harness::mpi
