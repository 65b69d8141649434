#include "report/page/charts.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "report/page/course_axis.h"
#include "support/sample_results.h"

namespace harness::page {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

constexpr double half_past_two = 1767364200;  // UTC

store::Result timed_sweep() {
  store::Result result = test::samples::sweep({"micro_batch_size=2", "micro_batch_size=4"}, {1, 1, 0.9, 0.8});
  for (std::size_t i = 0; i < result.blocks.size(); ++i) {
    result.blocks[i].start_unix_s = half_past_two + 30 * static_cast<double>(i);
    for (float& seconds : result.step_seconds[i]) seconds /= 1 + 0.02F * static_cast<float>(result.blocks[i].round % 4);
  }
  return result;
}

std::optional<report::Figure> chart_of(const store::Result& result) {
  return course_chart(result, analysis::summarise(result), analysis::level_course(result));
}

int count_of(const std::string& text, const std::string& part) {
  int count = 0;
  for (std::size_t at = 0; (at = text.find(part, at)) != std::string::npos; at += part.size()) ++count;
  return count;
}

TEST(CourseChart, EveryBlockIsADotOverTheTime) {
  const auto figure = chart_of(timed_sweep());
  ASSERT_TRUE(figure);
  EXPECT_EQ(count_of(figure->drawing, "<circle "), 48);
  EXPECT_EQ(count_of(figure->drawing, "class=\"level\""), 47);
  EXPECT_THAT(figure->drawing, HasSubstr(">14:35<"));
  EXPECT_THAT(figure->drawing, HasSubstr("dot v-baseline"));
  EXPECT_THAT(figure->drawing, HasSubstr("dot v-faster"));
  EXPECT_THAT(figure->drawing, Not(HasSubstr("class=\"jump\"")));
  EXPECT_THAT(figure->drawing, Not(HasSubstr("class=\"foreign\"")));
  EXPECT_EQ(figure->numbers.rows.size(), 12u);
}

TEST(CourseChart, BlocksThatDoNotCountAreHollow) {
  store::Result result = timed_sweep();
  for (float& seconds : result.step_seconds[20]) seconds *= 3;
  const auto figure = chart_of(result);
  ASSERT_TRUE(figure);
  EXPECT_EQ(count_of(figure->drawing, "<circle class=\"aside "), 1);
}

TEST(CourseChart, AJumpAndWhatOthersTookAreDrawn) {
  store::Result result = timed_sweep();
  result.rank_table.push_back({0, 0, 0, "node0", "", 8, 4, 1e9});
  for (std::size_t i = 0; i < result.blocks.size(); ++i) {
    result.conditions.push_back({.steal_share = 0, .foreign_cores = i < 24 ? 0.0 : 4.0, .busiest_host = "node0"});
    if (i < 24) continue;
    for (float& seconds : result.step_seconds[i]) seconds *= 1.25F;
  }
  const auto figure = chart_of(result);
  ASSERT_TRUE(figure);
  EXPECT_EQ(count_of(figure->drawing, "class=\"jump\""), 1);
  EXPECT_THAT(figure->drawing, HasSubstr(" % slower<"));
  EXPECT_EQ(count_of(figure->drawing, "class=\"foreign\""), 23);  // the last block's end is not known
  EXPECT_EQ(figure->numbers.rows.back()[6].text, "4.00");
}

TEST(CourseChart, WithoutTimesThereIsNone) {
  EXPECT_FALSE(chart_of(test::samples::sweep({"micro_batch_size=2"}, {1, 1, 0.9})));
  EXPECT_FALSE(chart_of(store::Result{}));
}

TEST(CourseAxis, SessionsStandSideBySide) {
  std::vector<analysis::CourseBlock> blocks(6);
  for (std::size_t i = 0; i < 6; ++i) {
    blocks[i].session = i < 3 ? 0 : 2;
    blocks[i].time_unix_s = half_past_two + 600 * static_cast<double>(i) + (i < 3 ? 0 : 86400);
  }
  const CourseAxis axis(blocks);
  ASSERT_EQ(axis.borders().size(), 1u);
  EXPECT_LT(axis.at(0, blocks[2].time_unix_s), axis.borders()[0]);
  EXPECT_GT(axis.at(2, blocks[3].time_unix_s), axis.borders()[0]);
  EXPECT_NEAR(axis.at(2, blocks[5].time_unix_s) - axis.at(2, blocks[3].time_unix_s),
              axis.at(0, blocks[2].time_unix_s) - axis.at(0, blocks[0].time_unix_s), 1e-9);
  const std::vector<CourseAxis::Tick> ticks = axis.ticks();
  ASSERT_EQ(ticks.size(), 6u);  // every 10 min
  EXPECT_EQ(ticks[1].label, "14:40");
  EXPECT_EQ(ticks[3].label, "15:00");
}

}  // namespace
}  // namespace harness::page
