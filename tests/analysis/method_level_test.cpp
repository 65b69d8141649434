// The intervals of docs/method.md, recomputed.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <nlohmann/json.hpp>
#include <set>

#include "analysis/level_course.h"
#include "analysis/summary.h"
#include "method_sweep.h"
#include "support/paths.h"

namespace harness::method {
namespace {

constexpr double level_tolerance = 1e-7;

// With the guards, which the example may not need. The file's ends are without the reach to blocks apart.
TEST(MethodPage, LevelOfSweepsWithKnownAnswers) {
  const auto sweeps =
      nlohmann::json::parse(std::ifstream(test::source_dir() + "/tests/analysis/data/level_sweeps.json"));
  int carried = 0, widened = 0, aside = 0, reached = 0;
  for (const auto& sweep : sweeps) {
    const std::string name = sweep["name"];
    if (name.starts_with("no scatter")) continue;  // all weights predict alike
    SCOPED_TRACE(name);
    std::vector<PageBlock> blocks;
    for (std::size_t i = 0; i < sweep["y"].size(); ++i) {
      const int of = sweep["case"][i];
      blocks.push_back({sweep["y"][i], sweep["t"][i], std::max(of - 1, 0), of, sweep["round"][i], sweep["session"][i]});
    }
    const PageModel model(blocks);
    const auto& known = sweep["cases"];
    EXPECT_NEAR(model.carry_p, known["carry_p"], level_tolerance);
    if (!model.carries_over) {
      EXPECT_DOUBLE_EQ(model.rho, known["decay"]);
    }
    EXPECT_NEAR(model.v, known["common"], level_tolerance);
    EXPECT_NEAR(model.g, known["widening"], level_tolerance);
    const auto cases = known["effect"].size();
    ASSERT_EQ(model.groups.size(), cases + 1);
    for (std::size_t i = 0; i < cases; ++i) {
      const PageInterval interval = model.interval(static_cast<int>(i) + 1, 0.05 / static_cast<double>(cases));
      EXPECT_NEAR(interval.center, known["effect"][i], level_tolerance);
      EXPECT_LE(interval.low, known["low"][i].get<double>() + level_tolerance);
      EXPECT_GE(interval.high, known["high"][i].get<double>() - level_tolerance);
      const bool further = interval.low < known["low"][i].get<double>() - level_tolerance ||
                           interval.high > known["high"][i].get<double>() + level_tolerance;
      reached += further;
    }
    carried += model.carries_over;
    widened += model.g > 1;
    aside += std::ranges::any_of(model.groups, [](const PageGroup& group) { return group.set_aside > 0; });
  }
  EXPECT_GE(carried, 5);
  EXPECT_GE(widened, 2);
  EXPECT_GE(aside, 4);
  EXPECT_LE(reached, 30);  // of some 170: few sweeps have two states
}

// "Looks": of each case the look that settled it, its share of the error, and its interval.
TEST(MethodPage, AllIntervalsAndVerdictsOfTheExampleFollowFromIt) {
  const store::Result& file = example();
  const analysis::Summary summary = analysis::summarise(file);
  ASSERT_EQ(file.interval, "level");
  ASSERT_EQ(file.looks, "5,8,12,18,20");
  ASSERT_EQ(file.cases[1].name, "baseline_again");
  const std::vector<PageAnswer> answers = answers_of(file, by_level);
  std::set<int> looks;
  for (int i = 1; i < file.case_count(); ++i) {
    SCOPED_TRACE(file.cases[i].name);
    const analysis::CaseSummary& row = summary.case_at(i);
    const PageInterval& page = answers[i].interval;
    ASSERT_TRUE(row.effect);
    EXPECT_NEAR(std::log(row.effect->ratio), page.center, level_tolerance);
    EXPECT_NEAR(std::log(row.effect->low), page.low, level_tolerance);
    EXPECT_NEAR(std::log(row.effect->high), page.high, level_tolerance);
    EXPECT_EQ(row.judgement.verdict, answers[i].verdict);
    if (i == 1) continue;  // the control has no look of its own
    EXPECT_EQ(row.settled_after, answers[i].settled_after);
    looks.insert(answers[i].settled_after);
  }
  EXPECT_EQ(looks, (std::set{5, 8}));
  const PageModel at_the_end(blocks_before(file, 8));
  ASSERT_TRUE(summary.level);
  EXPECT_NEAR(summary.level->block_deviation, std::sqrt(at_the_end.v), level_tolerance);
  EXPECT_NEAR(summary.level->serial_correlation, at_the_end.r, level_tolerance);
  EXPECT_NEAR(summary.level->widening, at_the_end.g, level_tolerance);
}

// "The machine over the sweep": its level at every block, and its drift.
TEST(MethodPage, TheCourseOfTheMachineFollowsFromIt) {
  const store::Result& file = example();
  const PageModel page(grouped(blocks_before(file, file.rounds), true), false);
  const analysis::LevelCourse course = analysis::level_course(file);
  ASSERT_EQ(course.blocks.size(), page.level.size());
  std::vector<double> x;
  for (std::size_t i = 0; i < course.blocks.size(); ++i) {
    const analysis::CourseBlock& block = course.blocks[i];
    EXPECT_NEAR(std::log(block.level_seconds), page.level[i] + page.groups[0].m, level_tolerance) << i;
    const PageGroup& group = page.groups[static_cast<std::size_t>(block.case_index)];
    x.push_back(std::log(block.seconds) - (group.m - page.groups[0].m));
    EXPECT_NEAR(block.machine, x.back(), level_tolerance) << i;
  }
  const auto third = static_cast<std::ptrdiff_t>(x.size() / 3);
  EXPECT_NEAR(analysis::level_drift(course),
              median({x.end() - third, x.end()}) - median({x.begin(), x.begin() + third}), level_tolerance);
}

}  // namespace
}  // namespace harness::method
