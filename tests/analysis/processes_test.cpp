#include "analysis/blocks.h"

#include <gtest/gtest.h>

#include <cmath>
#include <numbers>

#include "support/sample_results.h"

namespace harness::analysis {
namespace {

// Rounds whose blocks share a process. `effect`: of a process, in log seconds; `noise`: of a block.
store::Result shared(int rounds, double effect, double noise) {
  store::Result result = test::samples::sweep({"message_size=1 kB", "message_size=2 kB"}, {1, 1, 2, 3}, rounds);
  for (std::size_t i = 0; i < result.blocks.size(); ++i) {
    store::ResultBlock& block = result.blocks[i];
    block.process = 4 * block.round;
    const double of_process = effect * std::sin(1.7 * block.round) * std::numbers::sqrt2;
    const double of_block = noise * std::sin(2.9 * static_cast<double>(i)) * std::numbers::sqrt2;
    const double seconds = 0.1 * (1 + block.case_index) * std::exp(of_process + of_block);
    for (float& step : result.step_seconds[i]) step = static_cast<float>(seconds);
  }
  return result;
}

TEST(Processes, AreCountedWithWhatOneDoesToItsBlocks) {
  const auto found = find_processes(shared(40, 0.05, 0.01));
  ASSERT_TRUE(found && found->deviation);
  EXPECT_EQ(found->processes, 40);
  EXPECT_EQ(found->shared, 40);
  EXPECT_NEAR(*found->deviation, 0.05, 0.005);
  // The scatter of blocks is no effect of a process.
  EXPECT_LT(find_processes(shared(40, 0, 0.05))->deviation.value(), 0.02);
  EXPECT_FALSE(find_processes(shared(2, 0.05, 0.01))->deviation);
}

TEST(Processes, OneForEachBlockAreNotSpokenOf) {
  store::Result result = shared(6, 0.05, 0.01);
  for (std::size_t i = 0; i < result.blocks.size(); ++i) result.blocks[i].process = static_cast<std::int32_t>(i);
  EXPECT_FALSE(find_processes(result));
  // A block that was repeated alone.
  result = shared(6, 0.05, 0.01);
  result.blocks[5].process = 5;
  EXPECT_EQ(find_processes(result)->processes, 7);
  EXPECT_EQ(find_processes(result)->shared, 6);
}

TEST(BlockTime, PartsAddUpToTheTimeFromBlockToBlock) {
  store::Result result = shared(3, 0, 0);
  EXPECT_FALSE(time_of_blocks(result));  // a file that does not say
  double whole = 0;
  for (std::size_t i = 0; i < result.blocks.size(); ++i) {
    store::ResultBlock& block = result.blocks[i];
    block.start_unix_s = 1000 + 10.0 * static_cast<double>(i);
    block.setup_s = 1;
    block.build_s = 0.25;
    block.connect_s = 0.125;
    block.initialize_s = 0.5;
    block.total_s = 9;
    whole += i + 1 == result.blocks.size() ? 9 : 10;
  }
  const auto time = time_of_blocks(result);
  ASSERT_TRUE(time);
  EXPECT_EQ(time->blocks, 12);
  EXPECT_NEAR(time->start, 12 * 0.125, 1e-9);
  EXPECT_NEAR(time->connect, 12 * 0.125, 1e-9);
  EXPECT_NEAR(time->steps, 3 * 6 * 0.1 * (1 + 2 + 3 + 4), 1e-3);
  EXPECT_NEAR(time->between, 11, 1e-9);
  double sum = 0;
  for (const BlockTimePart& part : block_time_parts) sum += (*time).*part.seconds;
  EXPECT_NEAR(sum, whole, 1e-6);
  // A failed block has no parts; a new session begins when somebody starts it.
  result.blocks[11].session = 1;
  result.blocks[3].status = store::BlockStatus::failed;
  EXPECT_EQ(time_of_blocks(result)->blocks, 11);
  EXPECT_NEAR(time_of_blocks(result)->between, 9, 1e-9);
}

}  // namespace
}  // namespace harness::analysis
