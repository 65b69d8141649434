// The level model against a second implementation: tests/analysis/data/README.md.
#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "analysis/level_model.h"
#include "support/paths.h"

namespace harness::analysis {
namespace {

using nlohmann::json;

const json& sweeps() {
  static const json all = json::parse(std::ifstream(test::source_dir() + "/tests/analysis/data/level_sweeps.json"));
  return all;
}

// Case 0 is the baseline and 1 its copy, which is in its group unless it is to be apart.
std::vector<LevelBlock> blocks_of(const json& sweep, bool copy_apart) {
  std::vector<LevelBlock> blocks;
  for (std::size_t i = 0; i < sweep["y"].size(); ++i) {
    const int case_index = sweep["case"][i];
    LevelBlock& block = blocks.emplace_back();
    block.log_seconds = sweep["y"][i];
    block.steps_unix_s = sweep["t"][i];
    block.group = copy_apart ? case_index : std::max(case_index - 1, 0);
    block.case_index = case_index;
    block.round = sweep["round"][i];
    block.session = sweep["session"][i];
  }
  return blocks;
}

int set_aside(const LevelFit& fit) {
  int all = 0;
  for (const LevelGroup& group : fit.groups) all += group.set_aside;
  return all;
}

void expect_equal(const json& expected, const std::vector<LevelBlock>& given, double alpha) {
  constexpr double tolerance = 1e-9;
  std::vector<LevelBlock> blocks = keep_with_neighbour(given);
  ASSERT_EQ(blocks.size(), given.size());
  LevelFit fit = fit_level(blocks);
  const KindEffect carry = find_carry_over(blocks, fit);
  EXPECT_NEAR(carry.p_value, expected["carry_p"], 1e-7);
  EXPECT_EQ(carry.found(), expected["carry_p"].get<double>() < 0.05);
  if (carry.found()) {
    blocks = keep_with_round(blocks);
    fit = fit_level(blocks, LevelSource::round);
  } else if (fit.common_variance > time_resolution * time_resolution) {  // else all decays predict alike
    const auto decay = std::ranges::find(NeighbourLevel::decays, expected["decay"].get<double>());
    ASSERT_NE(decay, NeighbourLevel::decays.end());
    EXPECT_EQ(fit.time_constant_s, NeighbourLevel(blocks).time_constant_s(decay - NeighbourLevel::decays.begin()));
  }
  EXPECT_EQ(set_aside(fit), expected["aside"].get<int>());
  EXPECT_NEAR(fit.common_variance, expected["common"], tolerance);
  const SerialCorrelation serial = find_serial_correlation(blocks, fit);
  EXPECT_EQ(serial.pairs, expected["pairs"].get<int>());
  EXPECT_NEAR(serial.correlation, expected["correlation"], 1e-7);
  EXPECT_NEAR(serial.widening(), expected["widening"], 1e-7);
  ASSERT_EQ(fit.groups.size(), expected["effect"].size() + 1);
  for (std::size_t i = 0; i < expected["effect"].size(); ++i) {
    const std::vector<GroupWeight> contrast{{static_cast<int>(i) + 1, 1}, {0, -1}};
    const ConfidenceInterval interval = level_interval(fit, contrast, alpha, serial.widening());
    EXPECT_NEAR(interval.center, expected["effect"][i], tolerance);
    EXPECT_NEAR(interval.low, expected["low"][i], tolerance);
    EXPECT_NEAR(interval.high, expected["high"][i], tolerance);
  }
}

TEST(LevelReference, CasesAgainstBothBaselines) {
  ASSERT_GE(sweeps().size(), 50u);
  for (const json& sweep : sweeps()) {
    SCOPED_TRACE(sweep["name"].get<std::string>());
    const auto cases = static_cast<int>(sweep["cases"]["effect"].size());
    expect_equal(sweep["cases"], blocks_of(sweep, false), family_alpha(cases, 0.95));
  }
}

TEST(LevelReference, TheControlAlone) {
  for (const json& sweep : sweeps()) {
    SCOPED_TRACE(sweep["name"].get<std::string>());
    expect_equal(sweep["control"], blocks_of(sweep, true), family_alpha(1, 0.95));
  }
}

// The fixture must exercise what it is there for.
TEST(LevelReference, TheSweepsMeetTheGuards) {
  int carried = 0, widened = 0, aside = 0;
  for (const json& sweep : sweeps()) {
    carried += sweep["cases"]["carry_p"].get<double>() < 0.05;
    widened += sweep["cases"]["widening"].get<double>() > 1;
    aside += sweep["cases"]["aside"].get<int>() > 0;
  }
  EXPECT_GE(carried, 5);
  EXPECT_GE(widened, 2);
  EXPECT_GE(aside, 4);
}

}  // namespace
}  // namespace harness::analysis
