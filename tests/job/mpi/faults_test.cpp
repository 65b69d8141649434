#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>

#include <chrono>
#include <filesystem>
#include <fstream>
#include <thread>

#include "launched.h"
#include "support/files.h"
#include "support/wait.h"

namespace harness::mpi {

namespace {

using test::Launched;
using test::output_of;
using ::testing::HasSubstr;
using ::testing::Not;

struct Fault {
  const char* name;
  const char* fault;
  const char* limits;
  std::vector<std::string> reason;
};

class Faults : public ::testing::TestWithParam<Fault> {};

// The block ends with the right rank and reason. Later blocks run normally.
TEST_P(Faults, CostTheirBlockAndNothingElse) {
  const Fault& f = GetParam();
#ifdef __SANITIZE_ADDRESS__
  if (f.name == std::string("Allocation")) GTEST_SKIP() << "address space cannot be limited under this sanitizer";
#endif
  const std::string out =
      output_of(3, std::string("blocks=2 ") + f.limits, std::string("HARNESS_TEST_FAULT=case=block0,") + f.fault);
  EXPECT_THAT(out, HasSubstr("block 0 ok false stopped false culprit 1 samples 0 reason [rank 1 on "));
  for (const std::string& part : f.reason) EXPECT_THAT(out, HasSubstr(part)) << "no '" << part << "' in\n";
  EXPECT_THAT(out, HasSubstr("block 1 ok true"));
}

INSTANTIATE_TEST_SUITE_P(
    Kinds, Faults,
    ::testing::Values(
        Fault{"Segfault",
              "rank=1,step=3,kind=segfault",
              "",
              {"signal 11 (segmentation fault) in step 3, matmul qkv, layer 7, micro-batch 1",
               "last words: a library greets on stdout test fault: segfault"}},
        Fault{"Kill", "rank=1,step=3,kind=kill", "", {"signal 9 (kill)", "not by harness"}},
        Fault{"Exit", "rank=1,step=3,kind=exit", "", {"exited with code 7 in step 3"}},
        Fault{"Throw", "rank=1,step=3,kind=throw", "", {"a test fault was thrown"}},
        Fault{"BeforeTheFirstStep", "rank=1,step=-1,kind=segfault", "", {"signal 11", "while it built its Program"}},
        Fault{
            "Hang", "rank=1,step=3,kind=hang", "step=0.8", {"no step finished within 800 ms", "in step 3, matmul qkv"}},
        Fault{"HangAtStart", "rank=1,step=-1,kind=hang", "start=0.8", {"not ready to run within 800 ms", "built"}},
        Fault{"Suspended", "rank=1,step=3,kind=stop", "step=0.8", {"does not answer"}},
        Fault{"Memory", "rank=1,step=3,kind=memory", "memory=200e6", {"memory", "limit", "191 MiB", "in step 3"}},
        Fault{
            "Allocation", "rank=1,step=3,kind=allocation", "memory=200e6", {"out of memory: limit 191 MiB in step 3"}},
        Fault{"SharedMemory",
              "rank=1,step=3,kind=shared_memory",
              "memory=300e6",
              {"exceeded its memory limit: used ", "of 286 MiB"}}),
    [](const auto& of) { return std::string(of.param.name); });

// Whenever the supervisor asks.
TEST(Faults, AStepMayTakeNearlyItsDeadline) {
  EXPECT_THAT(output_of(2, "steps=6 step=1", "HARNESS_TEST_FAULT=step=every,kind=delay,seconds=0.75"),
              HasSubstr("block 0 ok true"));
}

// As with the results of a large collective.
TEST(Faults, LookingThroughBuffersMayTakeLongerThanAStep) {
  EXPECT_THAT(output_of(2, "steps=6 step=2", "FAKE_SLOW_CHECK=24"), HasSubstr("block 0 ok true"));
}

TEST(Faults, AKilledSupervisorLeavesNoWorkerBehind) {
  Launched job(3, "steps=3000");
  ASSERT_TRUE(job.says("begin 0")) << job.output();
  ASSERT_TRUE(test::wait_until([&] { return job.processes("worker").size() == 3; }));
  const auto supervisors = job.supervisors();
  ASSERT_EQ(job.processes("worker").size(), 3u);
  ASSERT_EQ(supervisors.size(), 3u);
  ::kill(supervisors.back(), SIGKILL);
  EXPECT_TRUE(job.wait()) << job.output();
  EXPECT_NE(job.exit_code(), 0);
}

// A single rank suffices.
TEST(Signals, TheFirstFinishesTheBlock) {
  Launched job(3, "blocks=100 steps=200");
  ASSERT_TRUE(job.says("begin 1")) << job.output();
  ::kill(job.supervisors().back(), SIGINT);
  ASSERT_TRUE(job.wait()) << job.output();
  EXPECT_EQ(job.exit_code(), 0);
  EXPECT_THAT(job.output(), HasSubstr("block 1 ok true"));
  EXPECT_THAT(job.output(), HasSubstr("end stop 1"));
  EXPECT_THAT(job.output(), Not(HasSubstr("begin 4")));
}

// Slurm can signal every process of a job step.
TEST(Signals, WorkersTakeNoNotice) {
  Launched job(2, "steps=300");
  ASSERT_TRUE(job.says("begin 0")) << job.output();
  for (int i = 0; i < 50; ++i) {
    for (const pid_t pid : job.processes("worker")) {
      ::kill(pid, SIGINT);
      ::kill(pid, SIGTERM);
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
  ASSERT_TRUE(job.wait()) << job.output();
  EXPECT_THAT(job.output(), HasSubstr("block 0 ok true"));
}

TEST(Signals, TheSecondStopsAtOnce) {
  Launched job(2, "steps=3000");
  ASSERT_TRUE(job.says("begin 0")) << job.output();
  for (int times = 0; times < 2; ++times) {
    for (const pid_t pid : job.supervisors()) ::kill(pid, SIGINT);
    std::this_thread::sleep_for(std::chrono::milliseconds(400));
  }
  ASSERT_TRUE(job.wait()) << job.output();
  EXPECT_EQ(job.exit_code(), 0);
  EXPECT_THAT(job.output(), HasSubstr("ok false stopped true"));
}

// mpirun sends SIGTERM and kills a second later: the block must be abandoned in time to report it.
TEST(Signals, MpirunInterruptedLeavesTimeForAWord) {
  Launched job(2, "steps=3000");
  ASSERT_TRUE(job.says("begin 0")) << job.output();
  ::kill(job.mpirun(), SIGINT);
  ASSERT_TRUE(job.wait()) << job.output();
  EXPECT_THAT(job.output(), HasSubstr("ok false stopped true"));
  EXPECT_THAT(job.output(), HasSubstr("end stop 2"));
}

void expect_ended(Launched& job, int rank) {
  ASSERT_TRUE(job.wait()) << job.output();  // no process is left, not even the frozen one
  EXPECT_NE(job.exit_code(), 0);
  EXPECT_THAT(job.output(), HasSubstr(fmt::format("harness: rank {} on ", rank)));
  EXPECT_THAT(job.output(),
              HasSubstr(" has not answered for 15 s: its process is frozen, or its node or network is down"));
}

TEST(Frozen, RankZeroIsMissedDuringABlock) {
  Launched job(3, "steps=100000 step=1000");
  ASSERT_TRUE(job.says("begin 0")) << job.output();
  ASSERT_TRUE(test::wait_until([&] { return job.processes("worker").size() == 3; }));
  ::kill(job.supervisor(0), SIGSTOP);
  expect_ended(job, 0);
}

// The other ranks wait for orders from rank 0, which is busy elsewhere.
TEST(Frozen, ARankIsMissedBetweenBlocks) {
  Launched job(3, "blocks=2 steps=1 pause=20");
  ASSERT_TRUE(job.says("pause 0")) << job.output();
  ::kill(job.supervisor(2), SIGSTOP);
  expect_ended(job, 2);
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

// Rank 0 while it is busy elsewhere, and all ranks: Ctrl-Z, a batch system that suspends jobs, a sleeping laptop.
TEST(Frozen, NeitherABusyRankNorASuspendedJobIs) {
  Launched job(3, "blocks=2 steps=1500 step=1000 pause=20");
  ASSERT_TRUE(job.says("begin 0")) << job.output();
  ASSERT_TRUE(test::wait_until([&] { return job.processes("worker").size() == 3; }));
  const std::vector<pid_t> all = job.processes("");
  for (const pid_t pid : all) ::kill(pid, SIGSTOP);
  std::this_thread::sleep_for(std::chrono::seconds(20));
  for (const pid_t pid : all) ::kill(pid, SIGCONT);
  ASSERT_TRUE(job.wait()) << job.output();
  EXPECT_EQ(job.exit_code(), 0) << job.output();
  EXPECT_THAT(job.output(), HasSubstr("block 1 ok true"));
}

// A launcher that is suspended stops its own processes, but not the workers, which have process groups of their own.
TEST(Frozen, WhileSupervisorsAreStoppedNoDeadlineOfAStepPasses) {
  Launched job(2, "steps=1500 step=2");
  ASSERT_TRUE(job.says("begin 0")) << job.output();
  ASSERT_TRUE(test::wait_until([&] { return job.processes("worker").size() == 2; }));
  std::this_thread::sleep_for(std::chrono::milliseconds(400));  // then they run steps
  const std::vector<pid_t> supervisors = job.supervisors();
  for (const pid_t pid : supervisors) ::kill(pid, SIGSTOP);
  std::this_thread::sleep_for(std::chrono::seconds(5));
  for (const pid_t pid : supervisors) ::kill(pid, SIGCONT);
  ASSERT_TRUE(job.wait()) << job.output();
  EXPECT_THAT(job.output(), HasSubstr("block 0 ok true"));
}

class Wrap : public ::testing::Test {
 protected:
  /// Writes a wrapper script, which gets the worker's command line as "$@".
  std::string around(const std::string& script) {
    const std::string path = folder_ / "wrap.sh";
    std::ofstream(path) << script;
    return "LAUNCH_TEST_WRAP='sh " + path + "'";
  }
  test::TemporaryFolder folder_;
};

TEST_F(Wrap, MayFloodStdout) {
  EXPECT_THAT(output_of(2, "blocks=1", around("head -c 100000000 /dev/zero\n\"$@\"\n")), HasSubstr("block 0 ok true"));
}

TEST_F(Wrap, IsWaitedForWhileItWritesItsReport) {
  const std::string report = folder_ / "report";
  EXPECT_THAT(output_of(2, "blocks=1", around("\"$@\"\nsleep 4\necho done >> " + report + "\n")),
              HasSubstr("block 0 ok true"));
  EXPECT_EQ(std::filesystem::exists(report) ? std::filesystem::file_size(report) : 0, 10u);  // from both ranks
}

// Deadlines apply to silent workers; invalid output fails at once.
TEST_F(Wrap, WhatIsNoMessageIsBlamedAtOnce) {
  const auto began = std::chrono::steady_clock::now();
  EXPECT_THAT(output_of(2, "blocks=1 start=60", around("exec cat /dev/zero >/proc/self/fd/199\n"), 50),
              HasSubstr("sent its supervisor what is no message of harness"));
  EXPECT_LT(std::chrono::steady_clock::now() - began, std::chrono::seconds(40));
}

// Frames of one byte, where a worker publishes its messages (2), sends its samples (8) or its failure (9).
TEST_F(Wrap, AFrameWithoutItsMessageIsBlamedOnItsRank) {
  for (const char* type : {"002", "010", "011"}) {  // in octal
    const std::string frame = fmt::format(R"(\{}\000\000\000\001\000\000\000\000\000\000\000x)", type);
    const std::string out =
        output_of(2, "blocks=1 start=60", around("printf '" + frame + "' >/proc/self/fd/199\nexec sleep 60\n"), 50);
    EXPECT_THAT(out, HasSubstr("block 0 ok false"));
    EXPECT_THAT(out, HasSubstr("sent its supervisor what is no message of harness"));
  }
}

TEST_F(Wrap, ThatClosesThePipesIsTold) {
  const std::string out = output_of(1, "blocks=1", around("exec bash -c 'exec 198<&- 199>&-; exec \"$@\"' x \"$@\"\n"));
  EXPECT_THAT(out, HasSubstr("block 0 ok false"));
  EXPECT_THAT(out, HasSubstr("got no pipe to its supervisor"));
}

}  // namespace

}  // namespace harness::mpi
