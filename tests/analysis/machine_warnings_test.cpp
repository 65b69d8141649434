// Warnings about the speed of a sweep's machine: simulated sweeps with known truth, and the wording.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "analysis/estimator.h"
#include "analysis/summary.h"
#include "base/units.h"
#include "noisy_sweep.h"
#include "support/sample_results.h"

namespace harness::analysis {
namespace {

using test::simulated::Disturbance;
using test::simulated::NoisySweeps;
using test::simulated::Size;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

std::optional<LevelFindings::Range> range_of(const SweepBlocks& sweep) {
  return estimate_level(sweep, {}).level.value().range;
}

constexpr Disturbance white = {.name = "white noise", .drift = 0, .set_up = 0.005};

int sweeps_with_a_range(const Disturbance& noise, int sweeps) {
  NoisySweeps noisy(noise, Size{}, 31);
  int found = 0;
  for (int i = 0; i < sweeps; ++i) found += range_of(noisy.draw()).has_value() ? 1 : 0;
  return found;
}

TEST(SpeedOfTheMachine, NoiseChangesNothing) {
  EXPECT_EQ(sweeps_with_a_range(white, 300), 0);
  EXPECT_EQ(sweeps_with_a_range({.name = "much noise", .drift = 0, .set_up = 0.1}, 300), 0);
  EXPECT_EQ(sweeps_with_a_range({.name = "drift of 1 % in 600 s"}, 300), 0);
}

// A machine that is slower from the sixth round on, or one that speeds up steadily.
TEST(SpeedOfTheMachine, TheSlowestAndTheFastestRoundAreFound) {
  NoisySweeps noisy(white, Size{}, 32);
  for (int i = 0; i < 100; ++i) {
    SweepBlocks step = noisy.draw(), trend = step;
    for (FinishedBlock& block : step.blocks) block.seconds *= block.round < 5 ? 1 : 1.15;
    for (FinishedBlock& block : trend.blocks) block.seconds *= 1.3 - 0.02 * block.round;
    const auto round_of = [&](std::size_t index) {
      return std::ranges::find(step.blocks, index, &FinishedBlock::index)->round;
    };
    const auto stepped = range_of(step), faded = range_of(trend);
    ASSERT_TRUE(stepped && faded);
    EXPECT_GE(round_of(stepped->slowest), 5);
    EXPECT_LT(round_of(stepped->fastest), 5);
    EXPECT_NEAR(stepped->log_change, std::log(1.15), 0.02);
    EXPECT_LE(round_of(faded->slowest), 1);
    EXPECT_GE(round_of(faded->fastest), 10);
  }
}

TEST(SpeedOfTheMachine, ABriefDisturbanceIsNoChange) {
  NoisySweeps noisy(white, Size{}, 33);
  SweepBlocks sweep = noisy.draw();
  for (std::size_t i = 70; i < 73; ++i) sweep.blocks[i].seconds *= 1.5;
  EXPECT_FALSE(range_of(sweep));
}

constexpr double afternoon = 1767364200;  // 2026-01-02 14:30:00 UTC

// A quiet sweep of 12 rounds of 4 cases, a block every 30 s, on two nodes of 8 cores.
store::Result quiet_sweep() {
  store::Result result = test::samples::sweep({"micro_batch_size=2", "micro_batch_size=4"}, {1, 1, 0.9, 0.8});
  for (std::size_t i = 0; i < result.blocks.size(); ++i) {
    result.blocks[i].start_unix_s = afternoon + 30 * static_cast<double>(i);
    for (float& seconds : result.step_seconds[i])
      seconds /= 1 + 0.02F * static_cast<float>(result.blocks[i].round % 4);  // the sample's own variation
    result.conditions.push_back({.steal_share = 0, .foreign_cores = 0.1, .busiest_host = "node0"});
  }
  for (int rank = 0; rank < 4; ++rank)
    result.rank_table.push_back({rank, rank % 2, rank / 2, rank < 2 ? "node0" : "node1", "", 8, 4, 1e9});
  return result;
}

std::vector<std::string> warnings_of(const store::Result& result) {
  std::vector<std::string> warnings;
  machine_warnings(result, summarise(result), warnings);
  return warnings;
}

void slow_down(store::Result& result, std::size_t first, std::size_t end, float factor) {
  for (std::size_t i = first; i < end; ++i) {
    for (float& seconds : result.step_seconds[i]) seconds *= factor;
  }
}

TEST(MachineWarnings, AQuietMachineHasNone) {
  EXPECT_THAT(warnings_of(quiet_sweep()), IsEmpty());
  store::Result silent = quiet_sweep();
  silent.conditions.assign(silent.blocks.size(), {});
  EXPECT_THAT(warnings_of(silent), IsEmpty());
  silent.conditions.clear();
  EXPECT_THAT(warnings_of(silent), IsEmpty());
}

TEST(MachineWarnings, OthersAreNamedWithNumbersAndTheNode) {
  store::Result result = quiet_sweep();
  for (std::size_t i = 20; i < 26; ++i) {
    result.conditions[i].foreign_cores = i == 22 ? 1.4 : 0.7;
    result.conditions[i].busiest_host = "node1";
  }
  const std::vector<std::string> warnings = warnings_of(result);
  ASSERT_THAT(warnings, SizeIs(1));
  EXPECT_THAT(warnings[0], HasSubstr("other processes kept cores busy in 6 of 48 blocks, at most 1.4 of 8 cores, on "
                                     "node1 at 14:41:00 UTC (round 6)"));
  result.conditions[23].foreign_cores = result.conditions[24].foreign_cores = 0.3;  // 4 of 48 blocks are few
  EXPECT_THAT(warnings_of(result), IsEmpty());
}

TEST(MachineWarnings, StolenTimeIsNamed) {
  store::Result result = quiet_sweep();
  for (std::size_t i = 0; i < 10; ++i) result.conditions[i].steal_share = 0.03;
  result.conditions[4].steal_share = 0.25;
  const std::vector<std::string> warnings = warnings_of(result);
  ASSERT_THAT(warnings, SizeIs(1));
  EXPECT_THAT(warnings[0], HasSubstr("more than 2 % of its CPU time to other guests in 10 of 48 blocks, at most 25 %, "
                                     "at 14:32:00 UTC (round 2)"));
}

TEST(MachineWarnings, AChangeOfSpeedIsNamedWithItsMoments) {
  store::Result result = quiet_sweep();
  slow_down(result, 24, 48, 1.12F);
  const std::vector<std::string> warnings = warnings_of(result);
  ASSERT_THAT(warnings, SizeIs(1));
  EXPECT_THAT(warnings[0], HasSubstr("the machine took 1.12 times as long at 14:"));
  EXPECT_THAT(warnings[0], HasSubstr("Look at what started or ended"));
}

TEST(ClockText, IsTheTimeOfDay) {
  EXPECT_EQ(clock_text(afternoon + 130), "14:32:10");
  EXPECT_EQ(clock_text(-1), "?");
  EXPECT_EQ(clock_text(1e300), "?");
  EXPECT_EQ(clock_text(std::nan("")), "?");
}

}  // namespace
}  // namespace harness::analysis
