// Faults, kills and signals end one case, or the job with a readable result, and leave no process.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>

#include <chrono>
#include <random>
#include <thread>

#include "store/result_file.h"
#include "support/command.h"
#include "support/files.h"
#include "support/soak.h"

namespace harness {
namespace {

using test::Command;
using test::TemporaryFolder;
using ::testing::AllOf;
using ::testing::HasSubstr;

int finished_blocks(const store::Result& r) {
  return static_cast<int>(std::count_if(r.blocks.begin(), r.blocks.end(), [](const store::ResultBlock& b) {
    return b.status == store::BlockStatus::ok;
  }));
}

// tests/job/mpi tests the other kinds of faults.
TEST(Faults, EndTheirCaseAndNothingElse) {
  const TemporaryFolder folder;
  const auto config = test::write_small_config(folder, 2);
  Command command("HARNESS_TEST_FAULT='rank=1,step=2,case=micro_batch_size=2,kind=segfault' " +
                  test::harness_job(2, "sweep " + config));
  const auto o = command.wait(300);
  EXPECT_EQ(o.exit_code, 4) << o.out << o.err;
  EXPECT_TRUE(command.leaves_no_process());
  const store::Result r = store::read_result(folder / "small.h5");
  for (const store::ResultCase& c : r.cases) {
    if (c.name != "micro_batch_size=2") {
      EXPECT_EQ(c.status, store::CaseStatus::ok) << c.name << ": " << c.reason;
      continue;
    }
    EXPECT_EQ(c.status, store::CaseStatus::failed);
    EXPECT_THAT(c.reason, AllOf(HasSubstr("rank 1"), HasSubstr("signal 11")));
  }
  EXPECT_EQ(finished_blocks(r), 6);
}

// Repeatedly kills the whole job at a random moment: each time, the file opens and holds every block that was reported
// as finished. For the first three, --resume completes it.
TEST(Kill, AtRandomMomentsLosesNoFinishedBlock) {
  const int times = test::times(5, 3, 200);
  std::mt19937 random(7);
  for (int i = 0; i < times; ++i) {
    const TemporaryFolder folder;
    const auto config = test::write_small_config(folder, 3);
    int reported = 0;
    {
      Command command(test::harness_job(2, "sweep -v " + config));
      ASSERT_TRUE(command.wait_for("[1/12] round 1")) << command.err_so_far();
      std::this_thread::sleep_for(std::chrono::milliseconds(std::uniform_int_distribution<>(0, 2500)(random)));
      const std::string err = command.err_so_far();
      command.kill_all(SIGKILL);
      static_cast<void>(command.wait());
      for (std::size_t at = err.find(" per step  ("); at != std::string::npos; at = err.find(" per step  (", at + 1)) {
        const std::size_t line = err.rfind('\n', at) + 1;
        reported += err.substr(line, at - line).find("round") != std::string::npos ? 1 : 0;
      }
    }
    const store::Result killed = store::read_result(folder / "small.h5");
    EXPECT_GE(finished_blocks(killed), reported);
    if (i >= 3 || killed.state == store::RunState::complete) continue;
    const auto o = test::run(test::harness_job(2, "sweep --resume " + (folder / "small.h5")));
    ASSERT_TRUE(o.exit_code == 0 || o.exit_code == 4) << o.err;
    const store::Result whole = store::read_result(folder / "small.h5");
    EXPECT_EQ(whole.state, store::RunState::complete);
    EXPECT_EQ(finished_blocks(whole), 12);
    for (const auto& b : whole.blocks) {
      for (const auto& other : whole.blocks) {
        if (b.round == other.round) {
          EXPECT_EQ(b.session, other.session);
        }
      }
    }
  }
}

TEST(Frozen, RankSaysHowTheSweepContinues) {
  const test::TemporaryFolder folder;
  const auto config = test::write_small_config(folder, 3);
  Command command(test::harness_job(2, "sweep -v " + config));
  ASSERT_TRUE(command.wait_for("[1/12] round 1")) << command.err_so_far();
  ::kill(command.of_rank("sweep", 1), SIGSTOP);
  const auto o = command.wait(300);
  EXPECT_EQ(o.exit_code, 5) << o.err;
  EXPECT_TRUE(command.leaves_no_process());
  EXPECT_THAT(o.err, HasSubstr("harness: rank 1 on "));
  EXPECT_THAT(o.err, HasSubstr("sweep --resume " + (folder / "small.h5") + "` continues"));
  const auto resumed = test::run(test::harness_job(2, "sweep --resume " + (folder / "small.h5")));
  EXPECT_TRUE(resumed.exit_code == 0 || resumed.exit_code == 4) << resumed.err;
}

}  // namespace
}  // namespace harness
