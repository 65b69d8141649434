// What a waiting person reads after each round.
#include "sweep/first_answer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "support/sample_results.h"

namespace harness::sweep {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

// After `rounds` of 12, with looks after 5 and 8: a=1 is 10 % faster, b=1 is nearly on the threshold.
store::Result running(int rounds) {
  store::Result result = test::samples::sweep({"a=1", "b=1"}, {1, 1, 0.9, 1.0105});
  result.interval = "pairs";
  result.state = store::RunState::running;
  result.looks = "5,8,12";
  for (store::ResultBlock& block : result.blocks) {
    if (block.round >= rounds) block.status = store::BlockStatus::pending;
  }
  return result;
}

std::string answer(const store::Result& result, int rounds) {
  return first_answer(result, analysis::summarise(result), rounds);
}

TEST(FirstAnswer, SaysThatNothingIsSettled) {
  const std::string text = answer(running(4), 4);
  EXPECT_THAT(text, HasSubstr("after round 4 of 12, no verdict yet:"));
  EXPECT_THAT(text, Not(HasSubstr("settled")));
  EXPECT_THAT(text, HasSubstr("a=1"));
}

TEST(FirstAnswer, ASettledCaseLeavesTheOpenOnesAndKeepsTheNumbersOfItsVerdict) {
  const std::string at_look = answer(running(5), 5), later = answer(running(7), 7);
  const auto line_of = [](const std::string& text, const char* name) {
    const std::size_t at = text.find(name), begin = text.rfind('\n', at) + 1;
    return text.substr(begin, text.find('\n', at) - begin);
  };
  for (const std::string& text : {at_look, later}) {
    const std::size_t settled = text.find("settled"), open = text.find("no verdict yet"), a = text.find("a=1");
    ASSERT_NE(open, std::string::npos) << text;
    EXPECT_LT(settled, a) << text;
    EXPECT_LT(a, open) << text;
    EXPECT_EQ(text.find("a=1", open), std::string::npos) << text;
    EXPECT_GT(text.find("b=1"), open) << text;
    EXPECT_THAT(line_of(text, "a=1"), HasSubstr("a=1: faster by the look after round 5"));
  }
  EXPECT_EQ(line_of(at_look, "a=1"), line_of(later, "a=1"));
  EXPECT_NE(line_of(at_look, "b=1"), line_of(later, "b=1"));
}

TEST(FirstAnswer, CasesOfOtherBatchesAreComparedPerToken) {
  store::Result result = running(4);
  EXPECT_THAT(answer(result, 4), HasSubstr("no verdict yet: step time against the baseline"));
  result.cases.back().tokens_per_step *= 2;
  EXPECT_THAT(answer(result, 4), HasSubstr("no verdict yet: time per token against the baseline"));
}

TEST(FirstAnswer, NothingMeasuredSaysNothing) {
  EXPECT_EQ(answer(running(0), 0), "");
}

}  // namespace
}  // namespace harness::sweep
