// Ranks that another rank of their node started (job/mpi/guests.h). What a node is, and which GPUs it has, is
// pretended.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>

#include <algorithm>
#include <filesystem>

#include "launched.h"
#include "machine/cpus.h"
#include "support/temporary_folder.h"
#include "support/wait.h"

namespace harness::mpi {
namespace {

using test::Launched;
using test::TemporaryFolder;
using ::testing::ContainsRegex;
using ::testing::HasSubstr;
using ::testing::Not;

std::string showing_gpus(const TemporaryFolder& root, int count) {
  for (int i = 0; i < count; ++i)
    std::filesystem::create_directories(root / fmt::format("proc/driver/nvidia/gpus/0000:{:02x}:00.0", 0x1b + i));
  return "HARNESS_TEST_GPU_ROOT=" + root.path() + " ";
}

/// Processes that are each alone on a node that has four GPUs.
struct OnNodes {
  TemporaryFolder root;
  Launched job;
  OnNodes(int nodes, const std::string& arguments, const std::string& environment = "")
      : job(nodes, "guests=1 apart=1 " + arguments, showing_gpus(root, 4) + environment) {}
};

std::size_t count_of(const std::string& what, const std::string& text) {
  std::size_t count = 0;
  for (std::size_t at = text.find(what); at != std::string::npos; at = text.find(what, at + 1)) ++count;
  return count;
}

// With guests, and without: the contract is one.
TEST(Guests, MakeEveryCallThatOtherRanksMake) {
  Launched with(4, "every-call");
  ASSERT_TRUE(with.wait()) << with.output();
  EXPECT_EQ(with.exit_code(), 0) << with.output();
  EXPECT_THAT(with.output(), HasSubstr("nodes 0-1-2 3 4-5 6-7-8\n"));
  Launched without(3, "every-call-of-mpi");
  ASSERT_TRUE(without.wait()) << without.output();
  EXPECT_EQ(without.exit_code(), 0) << without.output();
  EXPECT_THAT(without.output(), HasSubstr("nodes 0-1-2\n"));
}

TEST(Guests, HaveTheNumbersThatALauncherWouldGiveThem) {
  OnNodes on(2, "blocks=2 steps=4 questions=1");
  ASSERT_TRUE(on.job.wait()) << on.job.output();
  EXPECT_EQ(on.job.exit_code(), 0);
  const std::string out = on.job.output();
  for (int rank = 0; rank < 8; ++rank) {
    EXPECT_THAT(out, HasSubstr(fmt::format("place {} local {}/4 node {} ", rank, rank % 4, rank / 4)));
    EXPECT_THAT(out, HasSubstr(fmt::format("answer 0 to {}\n", 10 * rank)));
    EXPECT_THAT(out, HasSubstr(fmt::format("sample {} setup true steps 5 losses 5 last 6", rank)));
  }
  for (const char* block : {"0", "1"})
    EXPECT_THAT(out, HasSubstr(fmt::format("block {} ok true stopped false culprit -1 samples 8", block)));
  EXPECT_THAT(out, HasSubstr("end stop 0"));
}

TEST(Guests, ComeToARankThatIsAloneOnItsNode) {
  OnNodes alone(1, "task=2");
  ASSERT_TRUE(alone.job.wait()) << alone.job.output();
  EXPECT_THAT(alone.job.output(), HasSubstr("culprit -1 samples 4"));
  // What the launcher, MPI and harness say to a rank does not reach its worker.
  for (const char* line : {"identity 3 OMPI_COMM_WORLD_RANK=unset", "identity 3 PMIX_RANK=unset",
                           "identity 3 HARNESS_RANK=3", "identity 3 OMP_WAIT_POLICY=passive"})
    EXPECT_THAT(alone.job.output(), HasSubstr(line));
  const TemporaryFolder root;
  Launched together(2, "guests=1", showing_gpus(root, 2));
  ASSERT_TRUE(together.wait()) << together.output();
  EXPECT_THAT(together.output(), HasSubstr("culprit -1 samples 2"));
  Launched unasked(1, "apart=1", showing_gpus(root, 2));
  ASSERT_TRUE(unasked.wait()) << unasked.output();
  EXPECT_THAT(unasked.output(), HasSubstr("culprit -1 samples 1"));
}

TEST(Guests, AreAsManyAsTheGpusThatTheirHostSees) {
  OnNodes on(1, "", "CUDA_VISIBLE_DEVICES=1,3");
  ASSERT_TRUE(on.job.wait()) << on.job.output();
  EXPECT_THAT(on.job.output(), HasSubstr("culprit -1 samples 2"));
}

// mpirun binds the one process that it starts to one core, unless a container forbids it.
TEST(Guests, MayUseTheCpusThatTheirHostIsNotBoundTo) {
  OnNodes on(1, "");
  ASSERT_TRUE(on.job.wait()) << on.job.output();
  for (const char* guest : {"1", "2", "3"})
    EXPECT_THAT(on.job.output(),
                HasSubstr(fmt::format("cpus {} {}\n", guest, machine::list_of(machine::allowed_cpus()))));
}

TEST(Guests, AreNamedWhenTheirWorkersDie) {
  OnNodes on(2, "blocks=2 steps=4", "HARNESS_TEST_FAULT=rank=6,step=2,kind=segfault,case=block0");
  ASSERT_TRUE(on.job.wait()) << on.job.output();
  EXPECT_EQ(on.job.exit_code(), 0);
  EXPECT_THAT(on.job.output(), HasSubstr("block 0 ok false stopped false culprit 6 samples 0 reason [rank 6 on "));
  EXPECT_THAT(on.job.output(), HasSubstr("block 1 ok true"));
}

/// Whether all workers run, and each supervisor has its guests.
bool is_complete(const Launched& job, std::size_t nodes) {
  const std::vector<pid_t> supervisors = job.supervisors();
  return supervisors.size() == nodes && job.processes("worker").size() == 4 * nodes &&
         std::ranges::all_of(supervisors, [&](pid_t pid) { return job.guests_of(pid).size() == 3; });
}

TEST(Guests, StopWhenAnyRankIsAskedTo) {
  for (const bool a_guest : {false, true}) {
    OnNodes on(2, "blocks=100 steps=50");
    ASSERT_TRUE(on.job.says("begin 1")) << on.job.output();
    const pid_t host = on.job.supervisors().back();
    ::kill(a_guest ? on.job.guests_of(host).back() : host, SIGINT);
    ASSERT_TRUE(on.job.wait()) << on.job.output();
    EXPECT_EQ(on.job.exit_code(), 0);
    EXPECT_THAT(on.job.output(), HasSubstr("end stop 1"));
    EXPECT_THAT(on.job.output(), Not(HasSubstr("ok false")));
  }
}

// From a launcher that will kill next: what runs is given up.
TEST(Guests, GiveUpTheirBlockWhenTheirHostIsTerminated) {
  OnNodes on(2, "steps=100000");
  ASSERT_TRUE(on.job.says("begin 0")) << on.job.output();
  ASSERT_TRUE(test::wait_until([&] { return is_complete(on.job, 2); }));
  ::kill(on.job.supervisors().back(), SIGTERM);
  ASSERT_TRUE(on.job.wait()) << on.job.output();
  EXPECT_THAT(on.job.output(), HasSubstr("ok false stopped true"));
  EXPECT_THAT(on.job.output(), HasSubstr("end stop 2"));
}

TEST(Guests, ThatAreKilledAreOneError) {
  for (const std::size_t node : {0u, 1u}) {
    OnNodes on(2, "steps=100000");
    ASSERT_TRUE(on.job.says("begin 0")) << on.job.output();
    ASSERT_TRUE(test::wait_until([&] { return is_complete(on.job, 2); }));
    ::kill(on.job.guests_of(on.job.supervisors().at(node)).at(1), SIGKILL);
    ASSERT_TRUE(on.job.wait()) << on.job.output();
    EXPECT_NE(on.job.exit_code(), 0);
    EXPECT_EQ(count_of("harness: ", on.job.output()), 1u) << on.job.output();
    EXPECT_THAT(on.job.output(), ContainsRegex("harness: rank [123567] on [^ ]+, which rank [04] started for a GPU of "
                                               "its own, ended too early: it was killed by signal 9"));
  }
}

TEST(Guests, EndWithTheirHost) {
  for (const std::size_t node : {0u, 1u}) {
    OnNodes on(2, "steps=100000");
    ASSERT_TRUE(on.job.says("begin 0")) << on.job.output();
    ASSERT_TRUE(test::wait_until([&] { return is_complete(on.job, 2); }));
    ::kill(on.job.supervisors().at(node), SIGKILL);
    EXPECT_TRUE(on.job.wait()) << on.job.output();
    EXPECT_NE(on.job.exit_code(), 0);
    EXPECT_EQ(count_of("harness: ", on.job.output()), 0u) << on.job.output();
  }
}

// From the first rank, from one that has guests, and from a guest.
TEST(Guests, EndWithANoteUnderWay) {
  for (const char* from : {"0", "4", "5"}) {
    Launched job(3, std::string("late-note-of ") + from);
    ASSERT_TRUE(job.wait()) << job.output();
    EXPECT_EQ(job.exit_code(), 0) << job.output();
  }
}

TEST(Guests, AreNotMadeByAVariableOfTheUser) {
  Launched job(1, "", "HARNESS_GUEST=99");
  ASSERT_TRUE(job.wait()) << job.output();
  EXPECT_NE(job.exit_code(), 0);
  EXPECT_THAT(job.output(), HasSubstr("HARNESS_GUEST=99 is set in the environment"));
}

}  // namespace
}  // namespace harness::mpi
