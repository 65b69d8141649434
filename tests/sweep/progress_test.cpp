#include "sweep/progress.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <sstream>

namespace harness::sweep {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

// What the caller knows of the pieces that are left counts, not the mean of those so far.
TEST(Progress, TheRemainingTimeIsWhatIsExpected) {
  std::ostringstream err;
  ProgressLine progress(err, false);
  progress.start_phase(10);
  progress.begin("baseline");
  progress.expect(754);
  progress.end("ok");
  EXPECT_THAT(err.str(), HasSubstr("[1/10] baseline: ok  (elapsed 0:00, remaining about 12:34)\n"));
}

TEST(Progress, WithoutAnExpectationItIsTheMeanOfThisPhase) {
  std::ostringstream err;
  ProgressLine progress(err, false);
  progress.start_phase(10);
  progress.expect(754);
  progress.start_phase(3, 1);  // a new phase knows nothing
  progress.begin("one");
  progress.end("ok");
  EXPECT_THAT(err.str(), HasSubstr("[2/3] one: ok  (elapsed 0:00, remaining about 0:00)\n"));
}

TEST(Progress, OnATerminalOneLineIsRewrittenAndFailuresStay) {
  std::ostringstream err;
  ProgressLine progress(err, true);
  progress.start_phase(3);
  progress.begin("one");
  progress.end("ok");
  EXPECT_THAT(err.str(), Not(HasSubstr("\n")));
  progress.begin("two");
  progress.end("failed: rank 1 is gone");
  EXPECT_THAT(err.str(), HasSubstr("\r\033[K[2/3] two: failed: rank 1 is gone"));
  progress.begin("\033[31mthree");
  EXPECT_THAT(err.str(), Not(HasSubstr("\033[31m")));
}

}  // namespace
}  // namespace harness::sweep
