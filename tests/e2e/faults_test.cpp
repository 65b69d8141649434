#include <gtest/gtest.h>
#include <signal.h>

#include <chrono>
#include <filesystem>
#include <random>
#include <thread>

#include "command.h"
#include "store/result_file.h"

namespace harness {
namespace {

using testing::Command;
using testing::harness_job;
using testing::run;
using testing::TemporaryFolder;
using testing::write_small_config;

bool contains(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

int finished_blocks(const Result& r) {
  return static_cast<int>(std::count_if(r.blocks.begin(), r.blocks.end(),
                                        [](const ResultBlock& b) { return b.status == BlockStatus::ok; }));
}

struct Fault {
  const char* kind;
  const char* reason;  // a part of what must be recorded
};

class Faults : public ::testing::TestWithParam<Fault> {};

TEST_P(Faults, EndTheirCaseAndNothingElse) {
  const TemporaryFolder folder;
  const auto config = write_small_config(folder, 2);
  const std::string fault = std::string("rank=1,step=2,case=micro_batch_size=2,kind=") + GetParam().kind;
  Command command("HARNESS_TEST_FAULT='" + fault + "' " +
                  harness_job(2, "sweep " + config + " --set measure.memory_limit='1 GiB'"));
  const auto o = command.wait(100);
  EXPECT_EQ(o.exit_code, 4) << o.out << o.err;
  EXPECT_TRUE(command.tagged("").empty());
  const Result r = read_result(folder / "small.h5");
  for (const ResultCase& c : r.cases) {
    if (c.name != "micro_batch_size=2") {
      EXPECT_EQ(c.status, CaseStatus::ok) << c.name << ": " << c.reason;
      continue;
    }
    EXPECT_EQ(c.status, CaseStatus::failed);
    EXPECT_TRUE(contains(c.reason, "rank 1")) << c.reason;
    EXPECT_TRUE(contains(c.reason, GetParam().reason)) << c.reason;
  }
  EXPECT_EQ(finished_blocks(r), 6);
}

INSTANTIATE_TEST_SUITE_P(Kinds, Faults,
                         ::testing::Values(Fault{"segfault", "signal 11"}, Fault{"abort", "signal 6"},
                                           Fault{"kill", "signal 9"}, Fault{"exit", "exit"}, Fault{"hang", "step"},
                                           Fault{"memory", "memory"}),
                         [](const auto& fault) { return std::string(fault.param.kind); });

TEST(Supervisors, KilledLeaveNoWorkerBehind) {
  const TemporaryFolder folder;
  const auto config = write_small_config(folder, 50);
  Command command(harness_job(4, "sweep " + config));
  ASSERT_TRUE(command.wait_for("[3/200]")) << command.err_so_far();
  const auto supervisors = command.tagged("sweep");
  ASSERT_GE(supervisors.size(), 4u);
  for (int tries = 0; tries < 500 && command.tagged("worker").empty(); ++tries)
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  ::kill(supervisors.back(), SIGKILL);
  static_cast<void>(command.wait(30));
  for (int tries = 0; tries < 300 && !command.tagged("").empty(); ++tries)
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  EXPECT_TRUE(command.tagged("").empty());
  EXPECT_GE(finished_blocks(read_result(folder / "small.h5")), 2);
}

TEST(Signals, FirstFinishesTheBlockAndKeepsAPartialResult) {
  const TemporaryFolder folder;
  const auto config = write_small_config(folder, 50);
  Command command(harness_job(2, "sweep " + config));
  ASSERT_TRUE(command.wait_for("[3/200]")) << command.err_so_far();
  for (const pid_t pid : command.tagged("sweep")) ::kill(pid, SIGINT);
  const auto o = command.wait(30);
  EXPECT_TRUE(command.tagged("").empty());
  const Result r = read_result(folder / "small.h5");
  EXPECT_EQ(r.state, RunState::partial) << o.err;
  EXPECT_GE(finished_blocks(r), 3);
  EXPECT_TRUE(contains(o.out, "Partial")) << o.out;
}

// Kills the whole job at a random moment again and again; each time the file opens and holds every block whose end was
// reported. Then --resume completes it.
TEST(Kill, AtRandomMomentsLosesNoFinishedBlock) {
  const int times = std::getenv("HARNESS_SOAK") != nullptr ? 200 : 10;
  std::mt19937 random(7);
  for (int i = 0; i < times; ++i) {
    const TemporaryFolder folder;
    const auto config = write_small_config(folder, 3);
    int reported = 0;
    {
      Command command(harness_job(2, "sweep " + config));
      ASSERT_TRUE(command.wait_for("[1/12] round 1")) << command.err_so_far();
      std::this_thread::sleep_for(std::chrono::milliseconds(std::uniform_int_distribution<>(0, 2500)(random)));
      const std::string err = command.err_so_far();
      command.kill_all(SIGKILL);
      static_cast<void>(command.wait(20));
      for (std::size_t at = err.find(" a step  ("); at != std::string::npos; at = err.find(" a step  (", at + 1)) {
        const std::size_t line = err.rfind('\n', at) + 1;
        reported += contains(err.substr(line, at - line), "round") ? 1 : 0;
      }
    }
    const Result killed = read_result(folder / "small.h5");
    EXPECT_GE(finished_blocks(killed), reported);
    if (i >= 3 || killed.state == RunState::complete) continue;
    const auto o = run(harness_job(2, "sweep --resume -o " + (folder / "small.h5") + " " + config));
    ASSERT_TRUE(o.exit_code == 0 || o.exit_code == 4) << o.err;
    const Result whole = read_result(folder / "small.h5");
    EXPECT_EQ(whole.state, RunState::complete);
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

}  // namespace
}  // namespace harness
