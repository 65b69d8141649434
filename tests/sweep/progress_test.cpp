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

}  // namespace
}  // namespace harness::sweep
