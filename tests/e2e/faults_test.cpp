// Faults, kills and signals end one case, or the job with a readable result, and leave no process.
#include <signal.h>

#include <algorithm>
#include <chrono>
#include <map>
#include <random>
#include <set>
#include <thread>

#include "user.h"

namespace harness {
namespace {

auto finished_blocks(const store::Result& r) {
  return std::ranges::count(r.blocks, store::BlockStatus::ok, &store::ResultBlock::status);
}

// tests/job/mpi tests the other kinds of faults.
TEST(Faults, EndTheirCaseAndNothingElse) {
  const TemporaryFolder folder;
  const auto config = write_small_config(folder, 2);
  Command command(planted("rank=1,step=2,case=micro_batch_size=2,kind=segfault") + harness_job(2, "sweep " + config));
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
    const auto config = write_small_config(folder, 3);
    int reported = 0;
    {
      Command command(harness_job(2, "sweep -v " + config));
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
    const auto o = run_job(2, "sweep --resume " + (folder / "small.h5"));
    ASSERT_TRUE(is_measured(o)) << o.err;
    const store::Result whole = store::read_result(folder / "small.h5");
    EXPECT_EQ(whole.state, store::RunState::complete);
    EXPECT_EQ(finished_blocks(whole), 12);
    std::map<std::int32_t, std::set<std::int32_t>> sessions;  // by round
    for (const store::ResultBlock& block : whole.blocks) sessions[block.round].insert(block.session);
    for (const auto& [round, of_round] : sessions) EXPECT_EQ(of_round.size(), 1u) << round;
  }
}

TEST(Frozen, RankSaysHowTheSweepContinues) {
  const TemporaryFolder folder;
  const auto config = write_small_config(folder, 3);
  Command command(harness_job(2, "sweep -v " + config));
  ASSERT_TRUE(command.wait_for("[1/12] round 1")) << command.err_so_far();
  ::kill(command.of_rank("sweep", 1), SIGSTOP);
  const auto o = command.wait(300);
  EXPECT_EQ(o.exit_code, 5) << o.err;
  EXPECT_TRUE(command.leaves_no_process());
  EXPECT_THAT(o.err, AllOf(HasSubstr("harness: rank 1 on "),
                           HasSubstr("sweep --resume " + (folder / "small.h5") + "` continues")));
  const auto resumed = run_job(2, "sweep --resume " + (folder / "small.h5"));
  EXPECT_TRUE(is_measured(resumed)) << resumed.err;
}

}  // namespace
}  // namespace harness
