#include "job/job.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

#include "launched.h"
#include "machine/cpus.h"
#include "machine/tree.h"

namespace harness::mpi {
namespace {

using test::Launched;
using test::output_of;
using ::testing::HasSubstr;
using ::testing::Not;

TEST(Job, BlocksRunAndSamplesComeHome) {
  const std::string out = output_of(3, "blocks=2 steps=4");
  EXPECT_THAT(out, HasSubstr("block 0 ok true stopped false culprit -1 samples 3"));
  EXPECT_THAT(out, HasSubstr("block 1 ok true stopped false culprit -1 samples 3"));
  for (const char* rank : {"0", "1", "2"}) {
    EXPECT_THAT(out, HasSubstr(std::string("sample ") + rank + " setup true steps 5 losses 5 last 6"));
    EXPECT_THAT(out, HasSubstr(std::string("place ") + rank + " local " + rank + "/3 node 0\n"));
  }
  EXPECT_THAT(out, HasSubstr("end stop 0"));
}

TEST(Ranks, MakeEveryCall) {
  EXPECT_THAT(output_of(3, "every-call"), HasSubstr("nodes 0-1-2\n"));
}

TEST(Job, EveryRankAnswersAQuestion) {
  const std::string out = output_of(3, "questions=2 blocks=1");
  for (const char* question : {"0", "1"}) {
    const std::string start = std::string("answer ") + question + " to ";
    EXPECT_THAT(out, HasSubstr(start + "0\n" + start + "10\n" + start + "20\n"));
  }
  EXPECT_THAT(out, HasSubstr("block 0 ok true"));  // the job continues
}

// Workers are numbered within their set.
TEST(Job, AnyRanksOfTheJobMayHaveTheWorkers) {
  const std::string out = output_of(4, "first=2 ranks=2 task=2");
  EXPECT_THAT(out, HasSubstr("block 0 ok true stopped false culprit -1 samples 2"));
  for (const char* line : {"identity 0 HARNESS_RANK=0", "identity 1 HARNESS_RANK=1"}) EXPECT_THAT(out, HasSubstr(line));
}

// Lists the processes of rank 0, one per block.
std::vector<std::string> processes_of(const std::string& output) {
  const std::string mark = "identity 0 PID=";
  std::vector<std::string> processes;
  for (std::size_t at = output.find(mark); at != std::string::npos; at = output.find(mark, at + 1))
    processes.push_back(output.substr(at + mark.size(), output.find('\n', at) - at - mark.size()));
  return processes;
}

TEST(Job, BlocksOfASetShareTheirProcesses) {
  Launched alone(2, "blocks=3 task=2"), shared(2, "blocks=3 task=2 shared=1");
  ASSERT_TRUE(alone.wait()) << alone.output();
  ASSERT_TRUE(shared.wait()) << shared.output();
  const auto many = processes_of(alone.output()), one = processes_of(shared.output());
  EXPECT_EQ(std::set<std::string>(many.begin(), many.end()).size(), 3u);
  EXPECT_EQ(one, std::vector<std::string>(3, one.at(0)));
}

TEST(Job, AFaultEndsTheProcessesOfItsSetAndTheNextBlockHasNewOnes) {
  const std::string out =
      output_of(2, "blocks=4 task=2 shared=1", "HARNESS_TEST_FAULT=rank=1,step=-1,kind=segfault,case=block1");
  EXPECT_THAT(out, HasSubstr("block 1 ok false stopped false culprit 1"));
  const auto processes = processes_of(out);
  ASSERT_EQ(processes.size(), 3u) << out;
  EXPECT_NE(processes[0], processes[1]);
  EXPECT_EQ(processes[1], processes[2]);
}

TEST(Job, TheCulpritOfASetIsNamedByItsRankInTheJob) {
  EXPECT_THAT(output_of(4, "first=1 ranks=3 steps=4", "HARNESS_TEST_FAULT=rank=1,step=2,kind=segfault"),
              HasSubstr("block 0 ok false stopped false culprit 2 samples 0 reason [rank 2 on "));
}

// A rank that leaves first waits for the messages still sent to it: no other rank can receive them.
TEST(Job, EndsWithANoteUnderWay) {
  output_of(3, "late-note");
}

// As far as this machine's kernel reports it.
TEST(Job, ABlockKnowsWhatElseTheMachineDid) {
  machine::CpuSet cpus;
  cpus.set(0);
  const bool tells = machine::cpu_times_now(cpus).busy_s >= 0;
  const int cores = static_cast<int>(machine::cores_of(machine::allowed_cpus()).size());
  if (!tells || machine::limited_by_quota(cores) < cores)
    GTEST_SKIP() << "/proc/stat is hidden, or there is a CPU quota";
  EXPECT_THAT(output_of(3, "ranks=2"), HasSubstr("conditions steal true foreign true on " + machine::host_name()));
}

// All ranks keep the same one of several profiled steps: the median of the slowest rank's times.
TEST(Job, TheRanksAgreeOnOneProfiledStep) {
  const std::string out = output_of(3, "task=1");
  EXPECT_THAT(out, HasSubstr("sample 0 setup true timeline 2 totals 2 step 3"));
  EXPECT_THAT(out, HasSubstr("sample 1 setup true timeline 0 totals 2 step 1"));
  EXPECT_THAT(out, HasSubstr("sample 2 setup true timeline 0 totals 2 step 1"));
}

TEST(Job, WorkersSeeOneCleanEnvironment) {
  const std::string out =
      output_of(2, "task=2", "NCCL_ALGO=Ring OMP_NUM_THREADS=77 OMP_WAIT_POLICY=active SLURM_PROCID=0");
  for (const char* line :
       {"identity 0 NCCL_ALGO=Ring", "identity 1 NCCL_ALGO=Ring", "identity 1 OMP_WAIT_POLICY=passive",
        "identity 1 OMPI_COMM_WORLD_RANK=unset", "identity 1 PMIX_RANK=unset", "identity 1 SLURM_PROCID=unset",
        "identity 0 HARNESS_RANK=0", "identity 1 HARNESS_RANK=1"}) {
    EXPECT_THAT(out, HasSubstr(line)) << line;
  }
  EXPECT_THAT(out, Not(HasSubstr("OMP_NUM_THREADS=77")));
}

// As the kernel reports the workers' bindings.
TEST(Job, WorkersHaveCpusOfTheJob) {
  const std::string out = output_of(2, "task=2");
  const machine::CpuSet all = machine::allowed_cpus();
  for (const char* mark : {"identity 0 CPUS=", "identity 1 CPUS="}) {
    const std::size_t at = out.find(mark);
    ASSERT_NE(at, std::string::npos) << out;
    const machine::CpuSet cpus = machine::cpus_in(out.substr(at + std::string_view(mark).size()));
    EXPECT_TRUE(cpus.any() && (cpus & all) == cpus) << out;
  }
}

TEST(Job, DifferentProgramsAreNotRunTogether) {
  const std::string out = output_of(3, "", "FAKE_ODD_RANK=2");
  EXPECT_THAT(out, HasSubstr("ok false"));
  EXPECT_THAT(out, HasSubstr("different Programs"));
}

}  // namespace
}  // namespace harness::mpi
