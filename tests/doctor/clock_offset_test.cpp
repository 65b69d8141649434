// How far the clocks of nodes are apart: what gathers allow, and who is named.
#include "doctor/clock_offset.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "answering_job.h"
#include "base/error.h"
#include "doctor/diagnosis.h"
#include "doctor/examine.h"

namespace harness::doctor {
namespace {

TEST(ClockOffset, IsWhatAllGlancesAllow) {
  // A clock 3 s ahead, seen in 0.4 s and in 0.1 s: the narrow glance counts.
  const auto found = clock_offset({{10, 13.2, 10.4}, {20, 23.05, 20.1}});
  ASSERT_TRUE(found);
  EXPECT_NEAR(found->offset_s, 3, 1e-9);
  EXPECT_NEAR(found->uncertainty_s, 0.05, 1e-9);
  // Two that overlap in part leave less than either.
  const auto both = clock_offset({{10, 10.0, 10.1}, {20, 20.1, 20.1}});
  ASSERT_TRUE(both);
  EXPECT_NEAR(both->uncertainty_s, 0, 1e-9);
}

TEST(ClockOffset, GlancesThatContradictEachOtherTellNothing) {
  EXPECT_FALSE(clock_offset({}));
  EXPECT_FALSE(clock_offset({{10, 13, 10.1}, {20, 20, 20.1}}));
}

TEST(ClockOffset, NodesOfOneMachineHaveOneTime) {
  test::AnsweringJob job(2, 2);
  for (job::RankPlace& place : job.seats()) place.host = "";
  for (const Node& node : examine(job, {"/", 20, false})) {
    const auto offset_s = node.facts.signed_number("clock/offset_s"),
               uncertainty_s = node.facts.number("clock/offset_uncertainty_s");
    ASSERT_TRUE(offset_s && uncertainty_s);
    EXPECT_LE(std::abs(*offset_s), *uncertainty_s + 1e-5);  // written to a microsecond
  }
}

// The first node's clock is the wrong one: the others agree.
TEST(ClockOffset, WhoDiffersFromMostIsNamed) {
  std::vector<Node> nodes;
  for (const char* offset : {"0.000010", "-3.201000", "-3.199000"}) {
    nodes.push_back({fmt::format("node{}", nodes.size()), {}, {}});
    nodes.back().facts.set("clock/offset_s", offset);
    nodes.back().facts.set("clock/offset_uncertainty_s", "0.002000");
  }
  std::vector<std::string> said;
  for (const Line& line : diagnose(nodes).lines) {
    if (line.check == "clock.offset")
      said.push_back(
          fmt::format("{} {}: {}", name_of(line.finding.verdict), fmt::join(line.nodes, ","), line.finding.evidence));
  }
  EXPECT_THAT(said, ::testing::Contains(::testing::HasSubstr("warn node0: its clock is 3.20 s (+- 2 ms) ahead of")));
  EXPECT_EQ(std::ranges::count_if(said, [](const std::string& line) { return line.starts_with("warn"); }), 1);
}

TEST(ClockOffset, ASlowGatherTellsNothing) {
  Node node{"node0", {}, {}};
  node.facts.set("clock/offset_s", "0.3");
  node.facts.set("clock/offset_uncertainty_s", "0.5");
  for (const Line& line : diagnose({node}).lines) {
    if (line.check == "clock.offset") {
      EXPECT_EQ(line.finding.verdict, Verdict::unknown);
    }
  }
}

}  // namespace
}  // namespace harness::doctor
