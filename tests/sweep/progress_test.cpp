// Progress output for a user who waits for a sweep.
#include "sweep/progress.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <sstream>

namespace harness::sweep {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

class Progress : public ::testing::Test {
 protected:
  // Begins a piece and ends it at once.
  void measure(ProgressLine& progress, const char* what) const {
    progress.begin(what);
    progress.end("ok");
  }
  std::ostringstream err_;
  ProgressLine of_blocks_{err_, ProgressStyle::blocks}, of_rounds_{err_, ProgressStyle::rounds};
  ProgressLine on_a_terminal_{err_, ProgressStyle::bar, 60};
};

// The caller's estimate for the remaining pieces counts, not the mean of the finished ones.
TEST_F(Progress, TheRemainingTimeIsWhatIsExpected) {
  of_blocks_.start_phase("", 10);
  of_blocks_.expect(754);
  measure(of_blocks_, "baseline");
  EXPECT_EQ(err_.str(), "[1/10] baseline: ok  (elapsed 0:00, remaining about 12:34)\n");
}

TEST_F(Progress, WithoutAnExpectationItIsTheMeanOfThisPhase) {
  of_blocks_.start_phase("", 10);
  of_blocks_.expect(754);
  of_blocks_.start_phase("", 3, 1);  // a new phase has no estimate
  measure(of_blocks_, "one");
  EXPECT_THAT(err_.str(), HasSubstr("[2/3] one: ok  (elapsed 0:00, remaining about 0:00)\n"));
}

TEST_F(Progress, InAFileALineIsAPhaseARoundOrAFailure) {
  of_rounds_.start_phase("timelines", 2);
  measure(of_rounds_, "timeline of baseline");
  of_rounds_.begin("a copy");
  of_rounds_.skip();
  EXPECT_EQ(err_.str(), "timelines: 2 of 2  (elapsed 0:00, remaining about 0:00)\n");
  err_.str("");
  of_rounds_.start_phase("", 4);
  measure(of_rounds_, "round 1/2 baseline");
  EXPECT_EQ(err_.str(), "");
  of_rounds_.begin("round 1/2 a=1");
  of_rounds_.end("failed: rank 1 is gone");
  EXPECT_THAT(err_.str(), HasSubstr("[2/4] round 1/2 a=1: failed: rank 1 is gone  ("));
  err_.str("");
  of_rounds_.expect(75);
  of_rounds_.end_round(1, 2, "1 of 1 settled");
  EXPECT_EQ(err_.str(), "round 1/2: 2 of 4 blocks, 1 of 1 settled  (elapsed 0:00, remaining about 1:15)\n");
}

// Returns the line that a terminal shows in the end.
std::string shown(const std::string& text) {
  const std::size_t at = text.rfind("\r\033[K");
  return text.substr(at == std::string::npos ? 0 : at + 4);
}

TEST_F(Progress, OnATerminalOneLineIsRewrittenAndFailuresStay) {
  on_a_terminal_.announce("checking");
  on_a_terminal_.start_phase("timelines", 4);
  on_a_terminal_.expect(75);
  on_a_terminal_.begin("one");
  EXPECT_EQ(shown(err_.str()), "[                    ] 1/4  one  0:00, about 1:15 left");
  on_a_terminal_.end("ok");
  on_a_terminal_.begin("round 12/20 overlap_grad_reduce=false");
  EXPECT_EQ(shown(err_.str()), "[=====               ] 2/4  round 1…  0:00, about 1:15 left");
  on_a_terminal_.end_round(1, 2, "");
  EXPECT_THAT(err_.str(), Not(HasSubstr("\n")));
  on_a_terminal_.end("failed: rank 1 is gone");
  EXPECT_THAT(err_.str(), HasSubstr("\r\033[K[2/4] round 12/20 overlap_grad_reduce=false: failed: rank 1 is gone"));
  on_a_terminal_.begin("\033[31mthree");
  EXPECT_THAT(err_.str(), Not(HasSubstr("\033[31m")));
  on_a_terminal_.finish();
  EXPECT_EQ(shown(err_.str()), "");
}

TEST_F(Progress, AnErrorDoesNotContinueTheLineOfTheBar) {
  {
    ProgressLine progress(err_, ProgressStyle::bar, 60);
    progress.start_phase("timelines", 2);
    progress.begin("one");
    EXPECT_THAT(shown(err_.str()), HasSubstr("1/2  one"));
  }
  EXPECT_EQ(shown(err_.str()), "");
}

TEST_F(Progress, QuietSaysNothing) {
  ProgressLine quiet(err_, ProgressStyle::none);
  quiet.say("a line");
  quiet.announce("checking");
  quiet.start_phase("timelines", 1);
  measure(quiet, "one");
  quiet.begin("two");
  quiet.end("failed: rank 1 is gone");
  quiet.end_round(1, 1, "");
  quiet.finish();
  EXPECT_EQ(err_.str(), "");
}

// Warnings appear even without progress output.
TEST_F(Progress, AWarningIsPrintedInEveryStyle) {
  using enum ProgressStyle;
  for (const ProgressStyle style : {bar, rounds, blocks, none}) {
    std::ostringstream err;
    ProgressLine(err, style).warn("look out:\na \x1b[2J b");
    EXPECT_EQ(err.str(), "look out:\na \\x1b[2J b\n");
  }
}

TEST_F(Progress, ATextOfAUserEndsNoLine) {
  of_blocks_.say("→ a\nforged");
  EXPECT_EQ(err_.str(), "→ a\\x0aforged\n");
}

}  // namespace
}  // namespace harness::sweep
