#include "worker/planted/test_fault.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <ctime>

#include "base/text.h"

namespace harness::test {
namespace {

TEST(TestFaults, ConcernOneRankAndCase) {
  const std::string text = "rank=1,step=3,kind=segfault,case=layout=2";
  EXPECT_EQ(TestFault::parse(text, 1, "layout=2").kind(), "segfault");
  EXPECT_EQ(TestFault::parse(text, 0, "layout=2").kind(), "");
  EXPECT_EQ(TestFault::parse(text, 1, "baseline").kind(), "");
  const std::string delays = "kind=delay,step=every,seconds=0.5,rank=0;kind=delay,step=every,seconds=0.25";
  EXPECT_EQ(TestFault::parse(delays, 0, "").seconds(), 0.75);
  EXPECT_EQ(TestFault::parse(delays, 1, "").seconds(), 0.25);
  EXPECT_THROW(TestFault::parse("kind=exit;kind=abort", 0, ""), Error);
  EXPECT_THROW(TestFault::parse("rnk=1", 1, ""), Error);
  EXPECT_THROW(TestFault::parse("segfault", 1, ""), Error);
}

TEST(TestFaults, DelaysWithinAStepAreTheBackends) {
  const Delay delay = TestFault::parse("kind=delay,stream=data,seconds=0.5", 0, "").delay_within_step();
  EXPECT_EQ(delay.stream, "data");
  EXPECT_EQ(delay.seconds, 0.5);
  EXPECT_THROW(TestFault::parse("kind=spin,stream=data", 0, ""), Error);
}

TEST(TestFaults, PretendedDelaysAddUpInWhatWasMeasured) {
  const std::string text = "kind=pretend,step=every,seconds=2;kind=pretend,step=every,seconds=3";
  job::TimedSamples samples;
  samples.step_s = {0.25, 0.5, 0.5};
  samples.timed_total_s = 1;
  TestFault::parse(text, 0, "").pretend(samples, 1);
  EXPECT_THAT(samples.step_s, testing::ElementsAre(5.25, 5.5, 5.5));
  EXPECT_EQ(samples.timed_total_s, 11);
  TestFault::parse("kind=delay,step=every,seconds=2", 0, "").pretend(samples, 1);
  EXPECT_EQ(samples.timed_total_s, 11);
  EXPECT_THROW(TestFault::parse("kind=pretend,step=3", 0, ""), Error);
  EXPECT_THROW(TestFault::parse("kind=pretend,step=every;kind=delay,step=every", 0, ""), Error);
}

TEST(TestFaults, ASpinTakesItsTimeAndKeepsItsCore) {
  const auto start = std::chrono::steady_clock::now();
  const std::clock_t own = std::clock();
  TestFault::parse("kind=spin,step=-1,seconds=0.1", 0, "").act_before_steps();
  EXPECT_GE(std::chrono::steady_clock::now() - start, std::chrono::milliseconds(100));
  EXPECT_GT(static_cast<double>(std::clock() - own) / CLOCKS_PER_SEC, 0.01);
}

}  // namespace
}  // namespace harness::test
