#include "analysis/summary.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/units.h"
#include "support/sample_results.h"

namespace harness::analysis {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

constexpr double afternoon = 1767364200;  // 2026-01-02 14:30:00 UTC

// A quiet sweep of 12 rounds of 4 cases, a block every 30 s, on two nodes of 8 cores.
store::Result quiet_sweep() {
  store::Result result = test::samples::sweep({"micro_batch_size=2", "micro_batch_size=4"}, {1, 1, 0.9, 0.8});
  for (std::size_t i = 0; i < result.blocks.size(); ++i) {
    result.blocks[i].start_unix_s = afternoon + 30 * static_cast<double>(i);
    for (float& seconds : result.step_seconds[i])
      seconds /= 1 + 0.02F * static_cast<float>(result.blocks[i].round % 4);  // what the sample adds
    result.conditions.push_back({.load = 1, .steal_share = 0, .foreign_cores = 0.1, .busiest_host = "node0"});
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

TEST(MachineWarnings, AJumpIsNamedWithItsMoment) {
  store::Result result = quiet_sweep();
  slow_down(result, 24, 48, 1.12F);
  for (std::size_t i = 24; i < 48; ++i) result.conditions[i].foreign_cores = 0.38;  // below 5 %: no warning of its own
  const std::vector<std::string> warnings = warnings_of(result);
  ASSERT_THAT(warnings, SizeIs(1));
  EXPECT_THAT(warnings[0], HasSubstr("the machine became 12"));
  EXPECT_THAT(warnings[0],
              HasSubstr(" % slower at 14:42:00 UTC (round 7), when other processes went from 0.1 to 0.4 "));
  EXPECT_THAT(warnings[0], HasSubstr("Look at what started or ended then"));
}

TEST(MachineWarnings, DriftIsNamedWhereNoJumpSaysIt) {
  store::Result result = quiet_sweep();
  for (std::size_t i = 0; i < 48; ++i) slow_down(result, i, i + 1, 1 - 0.01F * static_cast<float>(i));
  const std::vector<std::string> warnings = warnings_of(result);
  ASSERT_FALSE(warnings.empty());
  EXPECT_THAT(warnings.back(), HasSubstr(" % faster from the first third of the sweep to the last"));
}

TEST(ClockText, IsTheTimeOfDay) {
  EXPECT_EQ(clock_text(afternoon + 130), "14:32:10");
  EXPECT_EQ(clock_text(-1), "?");
  EXPECT_EQ(clock_text(1e300), "?");
  EXPECT_EQ(clock_text(std::nan("")), "?");
}

}  // namespace
}  // namespace harness::analysis
