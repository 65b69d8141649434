#include "analysis/breakdown.h"

#include <gtest/gtest.h>

#include <cmath>
#include <map>

#include "support/sample_results.h"

namespace harness::analysis {
namespace {

store::ResultInterval interval(int rank, const char* stream, const char* kind, double start_s, double end_s,
                               const char* what = "") {
  return test::samples::interval(rank, rank, kind, stream, "backward", start_s, end_s, what);
}

// Two stages whose clocks begin 3 s apart: by the file, the second receives before the first sends.
store::Result pipeline() {
  store::Result result;
  result.timeline = {
      interval(0, "pipeline", "send", 5, 6, "activations"), interval(1, "pipeline", "receive", 2, 3.5, "activations"),
      interval(1, "pipeline", "send", 3, 4, "gradients"),   interval(0, "pipeline", "receive", 5, 7, "gradients"),
      interval(0, "world", "all_reduce", 8, 9, "loss"),     interval(0, "world", "record", 9, 9.5, "loss"),
      interval(1, "world", "all_reduce", 4, 6, "loss")};
  return result;
}

const DrawnInterval& found(const DrawnStep& step, int rank, std::string_view kind) {
  for (const DrawnInterval& x : step.intervals) {
    if (x.row->rank == rank && x.row->kind == kind) return x;
  }
  static const DrawnInterval none;
  ADD_FAILURE() << "no " << kind << " of rank " << rank;
  return none;
}

TEST(DrawnStep, TheClosingAllReduceEndsAtOnceOnAllRanks) {
  const store::Result result = pipeline();
  const DrawnStep step = drawn_step(result, 0);
  EXPECT_TRUE(step.one_clock);
  EXPECT_EQ(step.intervals.size(), result.timeline.size());
  EXPECT_DOUBLE_EQ(found(step, 1, "all_reduce").end_s, 9);
  EXPECT_DOUBLE_EQ(found(step, 0, "all_reduce").end_s, 9);
  EXPECT_GT(found(step, 1, "receive").end_s, found(step, 0, "send").start_s);  // the effect after its cause
  EXPECT_DOUBLE_EQ(found(step, 1, "receive").start_s, 5);
}

TEST(DrawnStep, WithoutAClosingAllReduceTheTimesAreThoseOfTheFile) {
  store::Result result = pipeline();
  result.timeline.pop_back();
  const DrawnStep step = drawn_step(result, 0);
  EXPECT_FALSE(step.one_clock);
  EXPECT_DOUBLE_EQ(found(step, 1, "receive").start_s, 2);
}

TEST(DrawnStep, SendsAndReceivesHaveTracksOfTheirOwn) {
  const store::Result result = pipeline();
  const DrawnStep step = drawn_step(result, 0);
  EXPECT_EQ(found(step, 0, "send").track, "pipeline send");
  EXPECT_EQ(found(step, 0, "receive").track, "pipeline receive");
  EXPECT_EQ(found(step, 0, "all_reduce").track, "world");
}

TEST(DrawnStep, NothingOverlapsOnATrackAndNothingIsLost) {
  store::Result result;
  for (int i = 0; i < 12; ++i) {
    const double start_s = i % 5;
    result.timeline.push_back(interval(i % 2, "data", "all_reduce", start_s, start_s + 0.5 + i % 3));
  }
  const DrawnStep step = drawn_step(result, 0);
  EXPECT_EQ(step.intervals.size(), result.timeline.size());
  std::map<std::pair<int, std::string>, double> until_s;
  for (const DrawnInterval& x : step.intervals) {
    double& end_s = until_s[{x.row->rank, x.track}];
    EXPECT_GE(x.start_s, end_s) << x.track;
    end_s = x.end_s;
  }
  EXPECT_TRUE(until_s.contains({0, "data"}));
  EXPECT_TRUE(until_s.contains({0, "data (2)"}));
}

TEST(DrawnStep, RowsThatCannotBeDrawnAndOtherCasesAreLeftOut) {
  store::Result result;
  result.timeline = {interval(0, "compute", "gelu", NAN, 1), interval(0, "compute", "gelu", 2, 1),
                     interval(0, "compute", "gelu", 0, 1)};
  result.timeline.push_back(result.timeline.back());
  result.timeline.back().case_index = 1;
  EXPECT_EQ(drawn_step(result, 0).intervals.size(), 1u);
  EXPECT_TRUE(drawn_step(result, 7).intervals.empty());
}

}  // namespace
}  // namespace harness::analysis
