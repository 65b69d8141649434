// Any one process of a job is frozen for good, at a moment that chance chooses: the sweep goes on or ends, says who it
// was, and leaves a result that can be read and no process.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>

#include <chrono>
#include <filesystem>
#include <random>
#include <thread>

#include "command.h"
#include "store/result_file.h"
#include "support/files.h"
#include "support/soak.h"

namespace harness {
namespace {

using test::Command;
using ::testing::AllOf;
using ::testing::AnyOf;
using ::testing::HasSubstr;

// "0" for the supervisor of rank 0, from the environment that mpirun gave it.
std::string rank_of(pid_t pid) {
  const std::string environment = '\0' + test::text_of("/proc/" + std::to_string(pid) + "/environ");
  const std::string name = std::string(1, '\0') + "OMPI_COMM_WORLD_RANK=";
  const std::size_t at = environment.find(name);
  return at == std::string::npos ? "" : environment.substr(at + name.size(), 1);
}

void freeze_one(Command& command, const std::string& result, bool worker, std::mt19937& random) {
  std::vector<pid_t> candidates = command.tagged(worker ? "worker" : "sweep");
  if (candidates.empty()) return;  // between two blocks, or at the end
  const pid_t frozen = candidates[random() % candidates.size()];
  const std::string rank = rank_of(frozen);
  ::kill(frozen, SIGSTOP);
  const auto o = command.wait(300);
  SCOPED_TRACE((worker ? "a worker" : "the supervisor of rank " + rank) + "\n" + o.out + o.err);
  EXPECT_THAT(o.err, ::testing::Not(HasSubstr("time-out ended it")));
  EXPECT_TRUE(command.leaves_no_process());
  if (std::filesystem::exists(result)) static_cast<void>(store::read_result(result));
  if (o.exit_code == 0) return;  // it was needed no more
  if (worker) {
    EXPECT_THAT(o.out + o.err, HasSubstr("rank "));
    return;
  }
  EXPECT_THAT(o.err, AnyOf(AllOf(HasSubstr("rank " + rank + " on "), HasSubstr("has not answered for 15 s")),
                           HasSubstr("MPI_Finalize has not returned")));
}

TEST(Frozen, AProcessAtRandomMomentsDoesNotHoldTheSweep) {
  const int times = test::times(3, 2, 20);
  std::mt19937 random(11);
  for (int i = 0; i < times; ++i) {
    const test::TemporaryFolder folder;
    const auto config = test::write_small_config(folder, 3);
    Command command(test::harness_job(2, "sweep " + config + " --set measure.deadlines.step=10s"));
    ASSERT_TRUE(command.wait_for("checking that all ranks")) << command.err_so_far();
    std::this_thread::sleep_for(std::chrono::milliseconds(std::uniform_int_distribution<>(0, 6000)(random)));
    freeze_one(command, folder / "small.h5", i % 3 == 2, random);
  }
}

TEST(Frozen, RankSaysHowTheSweepContinues) {
  const test::TemporaryFolder folder;
  const auto config = test::write_small_config(folder, 3);
  Command command(test::harness_job(2, "sweep -v " + config));
  ASSERT_TRUE(command.wait_for("[1/12] round 1")) << command.err_so_far();
  for (const pid_t pid : command.tagged("sweep")) {
    if (rank_of(pid) == "1") ::kill(pid, SIGSTOP);
  }
  const auto o = command.wait(300);
  EXPECT_EQ(o.exit_code, 5) << o.err;
  EXPECT_THAT(o.err, HasSubstr("harness: rank 1 on "));
  EXPECT_THAT(o.err, HasSubstr("sweep --resume " + (folder / "small.h5") + "` continues"));
  const auto resumed = test::run(test::harness_job(2, "sweep --resume " + (folder / "small.h5")));
  EXPECT_TRUE(resumed.exit_code == 0 || resumed.exit_code == 4) << resumed.err;
}

}  // namespace
}  // namespace harness
