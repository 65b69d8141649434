// kill -9 at random moments: the file always opens, and holds every block whose write returned.
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>

#include <chrono>
#include <cstring>
#include <random>
#include <set>
#include <thread>

#include "other_process.h"
#include "sample.h"
#include "support/files.h"

namespace harness::store {
namespace {

constexpr int blocks_per_file = 240;  // 80 rounds of 3

// Writes blocks without pause, and reports the number of each written block.
const OtherProcess::Role hasty("hasty", [](const OtherProcess::Side& side, const std::string& path) {
  const Result plan = sample_plan(16, blocks_per_file / 3);
  const auto file = ResultFile::create(path, plan, true);
  side.say("created");
  for (int index = 0;; index = (index + 1) % blocks_per_file) {
    write_sample(*file, plan, index);
    if (index % 3 == 0) file->write_case(index % 2, plan.cases[static_cast<std::size_t>(index % 2)]);
    side.say(std::to_string(index));
  }
});

// Starts a writer and kills it `after` this time from the creation of its file. Returns the reported blocks.
std::vector<int> killed_writer(const std::string& path, std::chrono::microseconds after) {
  OtherProcess writer({}, hasty, path);
  EXPECT_EQ(writer.line(), "created");
  // The pipe holds 16 Ki reports, more than are written in this time.
  std::this_thread::sleep_for(after);
  writer.send(SIGKILL);
  std::vector<int> reported;
  for (std::string line = writer.line(); !line.empty(); line = writer.line()) reported.push_back(std::stoi(line));
  const int status = writer.end();
  EXPECT_TRUE(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
  return reported;
}

void expect_whole(const std::string& path, const std::vector<int>& reported, int& finished) {
  const Result got = read_result(path);
  const std::set<int> said(reported.begin(), reported.end());
  for (int index = 0; index < blocks_per_file; ++index) {
    const auto at = static_cast<std::size_t>(index);
    if (said.contains(index)) {
      ASSERT_EQ(got.blocks[at].status, BlockStatus::ok) << "block " << index;
    }
    if (got.blocks[at].status != BlockStatus::ok) continue;
    ++finished;
    const SampleBlock want = sample_block(got, index);
    ASSERT_EQ(got.step_seconds[at], want.steps) << "block " << index;
    ASSERT_EQ(got.losses[at], want.losses) << "block " << index;
    ASSERT_EQ(std::memcmp(got.rank_seconds[at].data(), want.ranks.data(), want.ranks.size() * sizeof(float)), 0);
  }
}

TEST(Crash, KilledWritersLeaveAllTheyReported) {
  // Half of the runs use memory, without disk waits, so that kills hit the writing itself.
  const test::TemporaryFolder on_disk;
  const test::TemporaryFolder in_memory(access("/dev/shm", W_OK) == 0 ? "/dev/shm" : "");
  std::mt19937 random(20260102);
  int reports = 0, finished = 0;
  for (int run = 0; run < 30; ++run) {
    const std::string path = (run % 2 == 0 ? on_disk : in_memory) / ("run" + std::to_string(run) + ".h5");
    const auto reported = killed_writer(path, std::chrono::microseconds(random() % 30000));
    reports += static_cast<int>(reported.size());
    ASSERT_NO_FATAL_FAILURE(expect_whole(path, reported, finished)) << "run " << run;
  }
  EXPECT_GT(reports, 0);
  std::printf("30 kills: %d blocks reported, %d found\n", reports, finished);
}

}  // namespace
}  // namespace harness::store
