// The intervals of docs/method.md, recomputed.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <nlohmann/json.hpp>
#include <set>

#include "analysis/level_course.h"
#include "analysis/summary.h"
#include "method_level.h"
#include "method_page.h"
#include "support/paths.h"

namespace harness::method {
namespace {

constexpr double tolerance = 1e-7;

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
    EXPECT_NEAR(model.carry_p, known["carry_p"], tolerance);
    if (!model.carries_over) {
      EXPECT_DOUBLE_EQ(model.rho, known["decay"]);
    }
    EXPECT_NEAR(model.v, known["common"], tolerance);
    EXPECT_NEAR(model.g, known["widening"], tolerance);
    const auto cases = known["effect"].size();
    ASSERT_EQ(model.groups.size(), cases + 1);
    for (std::size_t i = 0; i < cases; ++i) {
      const PageInterval interval = model.interval(static_cast<int>(i) + 1, 0.05 / static_cast<double>(cases));
      EXPECT_NEAR(interval.center, known["effect"][i], tolerance);
      EXPECT_LE(interval.low, known["low"][i].get<double>() + tolerance);
      EXPECT_GE(interval.high, known["high"][i].get<double>() - tolerance);
      const bool further = interval.low < known["low"][i].get<double>() - tolerance ||
                           interval.high > known["high"][i].get<double>() + tolerance;
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
class ExampleLooks : public testing::Test {
 protected:
  const store::Result& file = example();
  const analysis::Summary summary = analysis::summarise(file);
  std::set<int> settled;

  double alpha() const {
    int comparisons = 0;
    for (const auto& c : file.cases) {
      comparisons += c.name != "baseline" && c.name != "baseline_again" && c.status != store::CaseStatus::impossible;
    }
    return (1 - file.confidence) / comparisons;
  }

  // The blocks of the rounds before a look; a settled case has none in later rounds.
  PageModel model(int rounds, bool copy_apart) const {
    std::vector<PageBlock> blocks;
    for (const auto& [i, seconds] : block_medians(file)) {
      const store::ResultBlock& b = file.blocks[i];
      if (b.round >= rounds) continue;
      const double tokens = file.case_at(b.case_index).tokens_per_step / file.cases[0].tokens_per_step;
      const int group = copy_apart ? b.case_index : std::max(b.case_index - 1, 0);
      blocks.push_back(
          {std::log(seconds / tokens), b.start_unix_s + b.setup_s, group, b.case_index, b.round, b.session});
    }
    return PageModel(blocks);
  }

  void expect_interval(int case_index, const PageInterval& page) const {
    SCOPED_TRACE(file.case_at(case_index).name);
    const auto& effect = summary.case_at(case_index).effect;
    ASSERT_TRUE(effect);
    EXPECT_NEAR(std::log(effect->ratio), page.center, tolerance);
    EXPECT_NEAR(std::log(effect->low), page.low, tolerance);
    EXPECT_NEAR(std::log(effect->high), page.high, tolerance);
  }
};

analysis::Verdict verdict(const PageInterval& interval, double e) {
  const double least = std::log(1 + e);
  if (interval.low > least) return analysis::Verdict::slower;
  if (interval.high < -least) return analysis::Verdict::faster;
  return interval.low > -least && interval.high < least ? analysis::Verdict::same : analysis::Verdict::unresolved;
}

TEST_F(ExampleLooks, AllIntervalsAndVerdictsFollowFromThePage) {
  ASSERT_EQ(file.interval, "level");
  ASSERT_EQ(file.looks, "5,8,12,18,20");
  ASSERT_EQ(file.cases[1].name, "baseline_again");
  int before = 0, last = 0;
  for (const int look : {5, 8}) {  // all is settled after these
    const PageModel at_look = model(look, false);
    const double share = static_cast<double>(look - before) / 20;
    before = last = look;
    for (int i = 2; i < file.case_count(); ++i) {
      if (settled.contains(i)) continue;
      const PageInterval interval = at_look.interval(i - 1, alpha() * share);
      const analysis::Verdict found = verdict(interval, file.smallest_effect);
      if (found == analysis::Verdict::unresolved) continue;
      settled.insert(i);
      EXPECT_EQ(summary.case_at(i).settled_after, look) << file.case_at(i).name;
      EXPECT_EQ(summary.case_at(i).judgement.verdict, found) << file.case_at(i).name;
      expect_interval(i, interval);
    }
  }
  EXPECT_EQ(static_cast<int>(settled.size()), file.case_count() - 2);
  expect_interval(1, model(last, true).interval(1, 1 - file.confidence));
  const PageModel at_the_end = model(last, false);
  ASSERT_TRUE(summary.level);
  EXPECT_NEAR(summary.level->block_deviation, std::sqrt(at_the_end.v), tolerance);
  EXPECT_NEAR(summary.level->serial_correlation, at_the_end.r, tolerance);
  EXPECT_NEAR(summary.level->widening, at_the_end.g, tolerance);
}

// "The machine over the sweep": its level at every block, and its drift.
TEST_F(ExampleLooks, TheCourseOfTheMachineFollowsFromThePage) {
  const PageModel page = model(file.rounds, true);
  const analysis::LevelCourse course = analysis::level_course(file);
  ASSERT_EQ(course.blocks.size(), page.level.size());
  std::vector<double> x;
  for (std::size_t i = 0; i < course.blocks.size(); ++i) {
    const analysis::CourseBlock& block = course.blocks[i];
    EXPECT_NEAR(std::log(block.level_seconds), page.level[i] + page.groups[0].m, tolerance) << i;
    const PageGroup& group = page.groups[static_cast<std::size_t>(block.case_index)];
    x.push_back(std::log(block.seconds) - (group.m - page.groups[0].m));
    EXPECT_NEAR(block.machine, x.back(), tolerance) << i;
  }
  const auto third = static_cast<std::ptrdiff_t>(x.size() / 3);
  EXPECT_NEAR(analysis::level_drift(course),
              median({x.end() - third, x.end()}) - median({x.begin(), x.begin() + third}), tolerance);
}

}  // namespace
}  // namespace harness::method
