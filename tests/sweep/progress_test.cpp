// Texts for a user who waits for a sweep.
#include "sweep/progress.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <sstream>

#include "support/sample_results.h"

namespace harness::sweep {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

class Progress : public ::testing::Test {
 protected:
  // Begins the next piece and ends it at once.
  void measure(ProgressLine& progress, const char* what) const {
    progress.begin(what);
    progress.end("ok");
  }
  std::ostringstream err_;
  ProgressLine in_a_log_{err_, false}, on_a_terminal_{err_, true};
};

// What the caller knows of the pieces that are left counts, not the mean of those so far.
TEST_F(Progress, TheRemainingTimeIsWhatIsExpected) {
  in_a_log_.start_phase(10);
  in_a_log_.expect(754);
  measure(in_a_log_, "baseline");
  EXPECT_THAT(err_.str(), HasSubstr("[1/10] baseline: ok  (elapsed 0:00, remaining about 12:34)\n"));
}

TEST_F(Progress, WithoutAnExpectationItIsTheMeanOfThisPhase) {
  in_a_log_.start_phase(10);
  in_a_log_.expect(754);
  in_a_log_.start_phase(3, 1);  // a new phase knows nothing
  measure(in_a_log_, "one");
  EXPECT_THAT(err_.str(), HasSubstr("[2/3] one: ok  (elapsed 0:00, remaining about 0:00)\n"));
}

TEST_F(Progress, OnATerminalOneLineIsRewrittenAndFailuresStay) {
  on_a_terminal_.start_phase(3);
  measure(on_a_terminal_, "one");
  EXPECT_THAT(err_.str(), Not(HasSubstr("\n")));
  on_a_terminal_.begin("two");
  on_a_terminal_.end("failed: rank 1 is gone");
  EXPECT_THAT(err_.str(), HasSubstr("\r\033[K[2/3] two: failed: rank 1 is gone"));
  on_a_terminal_.begin("\033[31mthree");
  EXPECT_THAT(err_.str(), Not(HasSubstr("\033[31m")));
}

// After `rounds` of 12, with looks after 5 and 8: a=1 is 10 % faster, b=1 is nearly on the threshold.
store::Result running(int rounds) {
  store::Result result = test::samples::sweep({"a=1", "b=1"}, {1, 1, 0.9, 1.0105});
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

TEST(BusyMachine, IsNamedWithNumbers) {
  machine::Conditions conditions;
  EXPECT_EQ(busy_machine(conditions), "");  // the kernel does not tell
  conditions.cores = 2;
  conditions.busiest_host = "node7";
  conditions.steal_share = 0;
  conditions.foreign_cores = 0.19;
  EXPECT_EQ(busy_machine(conditions), "");
  conditions.foreign_cores = 1.4;
  EXPECT_EQ(busy_machine(conditions),
            "this machine is busy: other processes keep 1.4 of 2 cores busy on node7; verdicts will be less sharp");
  conditions.steal_share = 0.07;
  EXPECT_EQ(
      busy_machine(conditions),
      "this machine is busy: other processes keep 1.4 of 2 cores busy on node7, and its host gives 7 % of its CPU "
      "time to other guests; verdicts will be less sharp");
  conditions.foreign_cores = 0;
  EXPECT_EQ(busy_machine(conditions),
            "this machine is busy: its host gives 7 % of its CPU time to other guests; verdicts will be less sharp");
}

}  // namespace
}  // namespace harness::sweep
