#include <gtest/gtest.h>

#include <cmath>
#include <map>
#include <numeric>

#include "analysis/breakdown.h"
#include "analysis/findings.h"
#include "random_timeline.h"
#include "support/sample_results.h"

namespace harness::analysis {
namespace {

using test::samples::interval;

template <class Key>
double sum_of(const std::vector<std::pair<Key, double>>& names) {
  return std::accumulate(names.begin(), names.end(), 0.0, [](double s, const auto& part) { return s + part.second; });
}

TEST(Breakdown, PartsAreTheStepWhateverTheTimeline) {
  for (std::uint64_t seed = 0; seed < 200; ++seed) {
    const store::Result r =
        test::samples::random_timeline(seed, 1 + static_cast<int>(seed % 4), 1 + static_cast<int>(seed / 4 % 4));
    const auto all = break_down(r);
    ASSERT_EQ(all.size(), 1u);
    std::vector<Breakdown> each = all[0].ranks;
    each.push_back(all[0].mean);
    for (const Breakdown& b : each) {
      EXPECT_NEAR(b.parts.sum() / b.step_s, 1, 1e-9) << seed;
      EXPECT_LT(unexplained(b), max_unexplained);
      for (const auto& s : b.parts.seconds) EXPECT_GE(s.value_or(0), -1e-12) << seed;
      EXPECT_NEAR(sum_of(b.other_compute), b[Part::other_compute].value_or(0), 1e-9);
      EXPECT_NEAR(sum_of(b.idle), b[Part::idle].value_or(0), 1e-9);
      EXPECT_EQ(b[Part::bubble].has_value() && r.cases[0].layout[program::Axis::pipeline] == 1, false) << seed;
      EXPECT_EQ(b[Part::waiting].has_value() && seed % 2 != 0, false) << seed;
    }
  }
}

store::Result by_hand(int pipeline, int data) {
  store::Result r;
  r.ranks = pipeline * data;
  store::ResultCase subject;
  subject.ranks = r.ranks;
  subject.layout[program::Axis::pipeline] = pipeline;
  subject.layout[program::Axis::data] = data;
  r.cases.push_back(subject);
  return r;
}

store::ResultSplit split_of(int rank, double compute_s, double exposed_s, double overlapped_s, double idle_s,
                            double waiting_s) {
  const double step_s = compute_s + exposed_s + idle_s, communication_s = exposed_s + overlapped_s;
  return {0, rank, step_s, compute_s, communication_s, exposed_s, overlapped_s, idle_s, store::not_known, waiting_s, 0};
}

// All ranks take part in the repeated collective of a step and in the one at its end. Only the latter closes it.
TEST(Breakdown, OnlyTheEndOfAStepIsItsClosingAllReduce) {
  store::Result r = by_hand(1, 2);
  r.timeline = {interval(0, 0, "all_reduce", "world", "forward", 1, 4),
                interval(0, 0, "all_reduce", "world", "forward", 4, 7),
                interval(0, 0, "all_reduce", "world", "finish", 8, 9)};
  const Breakdown b = break_down(r)[0].ranks[0];
  EXPECT_DOUBLE_EQ(*b[Part::communication], 6);
  EXPECT_DOUBLE_EQ(*b[Part::world], 1);
}

TEST(Breakdown, ByHand) {
  store::Result r = by_hand(1, 2);
  r.timeline = {interval(0, 0, "matmul", "compute", "forward", 1, 3),
                interval(0, 0, "layer_norm", "compute", "forward", 3, 3.5),
                interval(0, 0, "matmul", "compute", "backward", 4, 6),
                interval(0, 0, "all_reduce", "data", "gradient_sync", 5, 8),
                interval(0, 0, "all_reduce", "world", "finish", 8.25, 9),
                interval(0, 0, "record", "compute", "finish", 9, 9.1)};
  r.timeline[3].waiting_s = 1.5;  // one second of it is hidden by computation
  r.timeline[4].waiting_s = 0;
  r.splits.resize(2);
  r.splits[0].step_s = r.splits[1].step_s = 9.1;
  r.splits[1].rank = 1;
  r.splits[0].loading_s = 0.4;
  const CaseBreakdown whole = break_down(r)[0];
  const Breakdown& b = whole.ranks[0];
  EXPECT_DOUBLE_EQ(*b[Part::matrix_products], 4);
  EXPECT_NEAR(*b[Part::other_compute], 0.6, 1e-12);
  EXPECT_NEAR(*b[Part::waiting], 0.5, 1e-12);
  EXPECT_NEAR(*b[Part::data], 1.5, 1e-12);
  EXPECT_NEAR(*b[Part::world], 0.75, 1e-12);
  EXPECT_NEAR(*b[Part::loading], 0.4, 1e-12);
  EXPECT_NEAR(*b[Part::idle], 0.6 + 0.5 + 0.25, 1e-12);
  EXPECT_FALSE(b[Part::attention] || b[Part::recomputation] || b[Part::tensor] || b[Part::bubble]);
  ASSERT_EQ(b.overlapped.size(), 1u);
  EXPECT_EQ(b.overlapped[0], (std::pair(Part::data, 1.0)));
  EXPECT_EQ(b.idle[0], (std::pair(IdlePlace{.kind = IdlePlace::Kind::before_first}, 0.6)));
  EXPECT_EQ(b.idle[1].first.name(), "forward to backward");
  EXPECT_EQ(b.idle[2].first.name(), "between collectives");
}

// The optimizer overlaps the backward pass. The part of it that other computation hides does not count; the rest can
// hide communication.
TEST(Breakdown, ComputationBesideComputationIsCountedOnce) {
  store::Result r = by_hand(1, 2);
  r.timeline = {interval(0, 0, "matmul", "compute", "backward", 0, 6),
                interval(0, 0, "all_reduce", "data", "gradient_sync", 1, 2),
                interval(0, 0, "adamw", "optimizer", "optimizer", 2, 5),
                interval(0, 0, "all_reduce", "data", "gradient_sync", 4, 8),
                interval(0, 0, "adamw", "optimizer", "optimizer", 5, 7),
                interval(0, 0, "all_reduce", "world", "finish", 8, 9)};
  const CaseBreakdown whole = break_down(r)[0];
  const Breakdown& b = whole.ranks[0];
  EXPECT_DOUBLE_EQ(*b[Part::matrix_products], 6);
  EXPECT_DOUBLE_EQ(*b[Part::other_compute], 1);  // 6 to 7
  EXPECT_DOUBLE_EQ(*b[Part::data], 1);           // 7 to 8
  EXPECT_DOUBLE_EQ(*b[Part::world], 1);
  EXPECT_DOUBLE_EQ(b.parts.sum(), b.step_s);
  EXPECT_DOUBLE_EQ(b.hidden_s(Part::other_compute), 4);  // 2 to 6
  EXPECT_DOUBLE_EQ(b.hidden_s(Part::data), 4);           // 1 to 2, 4 to 7
  EXPECT_DOUBLE_EQ(b.overlapped_s(), 4);                 // communication alone
  ASSERT_EQ(b.other_compute.size(), 1u);
  EXPECT_EQ(b.other_compute[0], (std::pair(std::string("adamw"), 1.0)));

  // Over the ranks, hidden computation scales with computation, hidden communication with communication, and hidden
  // loading with neither.
  r.splits = {split_of(0, 7, 2, 4, 0, 0), split_of(1, 3.5, 2, 1, 0, 0)};
  r.splits[0].loading_s = 2;
  const Breakdown mean = break_down(r)[0].mean;
  EXPECT_NEAR(mean.hidden_s(Part::other_compute), 3, 1e-12);
  EXPECT_NEAR(mean.hidden_s(Part::data), 2.5, 1e-12);
  EXPECT_NEAR(mean.hidden_s(Part::loading), 2, 1e-12);
}

// Rank 0 has the timeline and is the late one: it idles while the others wait for it.
TEST(Breakdown, TheMeanIsOfAllRanksAndNotOfTheOneWithATimeline) {
  store::Result r = by_hand(1, 4);
  r.timeline = {interval(0, 0, "matmul", "compute", "forward", 3, 8),
                interval(0, 0, "all_reduce", "data", "gradient_sync", 8, 10)};
  r.timeline[1].waiting_s = 0;
  r.splits.push_back(split_of(0, 5, 2, 0, 3, 0));
  for (const int rank : {1, 2, 3}) r.splits.push_back(split_of(rank, 5, 5, 0, 0, 3));
  const CaseBreakdown whole = break_down(r)[0];
  EXPECT_DOUBLE_EQ(*whole.ranks[0][Part::idle], 3);
  EXPECT_NEAR(*whole.ranks[0][Part::waiting], 0, 1e-12);
  const Breakdown& mean = whole.mean;
  EXPECT_NEAR(*mean[Part::matrix_products], 5, 1e-12);
  EXPECT_NEAR(*mean[Part::idle], 0.75, 1e-12);
  EXPECT_NEAR(*mean[Part::waiting], 2.25, 1e-12);
  EXPECT_NEAR(*mean[Part::data], 2, 1e-12);
  EXPECT_NEAR(sum_of(mean.idle), 0.75, 1e-12);
  r.splits[2].idle_s = 1;  // does not add up: only rank 0 is known
  EXPECT_NEAR(*break_down(r)[0].mean[Part::idle], 3, 1e-12);
}

TEST(Breakdown, AStageThatWaitsForAnotherIsABubble) {
  store::Result r = by_hand(2, 1);
  r.timeline = {interval(0, 0, "matmul", "compute", "forward", 0, 4),
                interval(0, 0, "send", "pipeline", "forward", 4, 5, "activations"),
                interval(1, 1, "receive", "pipeline", "forward", 0, 5, "activations"),
                interval(1, 1, "matmul", "compute", "forward", 5, 9),
                interval(0, 0, "all_reduce", "data", "gradient_sync", 5, 11, "tied embedding"),
                interval(1, 1, "all_reduce", "data", "gradient_sync", 9, 11, "tied embedding")};
  for (const std::size_t none : {1, 5}) r.timeline[none].bubble_s = 0;
  for (const std::size_t waits : {2, 4}) r.timeline[waits].bubble_s = 4;
  const CaseBreakdown whole = break_down(r)[0];
  ASSERT_EQ(whole.ranks.size(), 2u);
  EXPECT_DOUBLE_EQ(*whole.ranks[0][Part::bubble], 4);     // in the exchange of the tied embedding
  EXPECT_DOUBLE_EQ(*whole.ranks[0][Part::embedding], 2);  // duration on the stage that arrives last
  EXPECT_DOUBLE_EQ(*whole.ranks[0][Part::pipeline], 1);
  EXPECT_DOUBLE_EQ(*whole.ranks[1][Part::bubble], 4);  // until the first micro-batch arrives
  EXPECT_DOUBLE_EQ(*whole.ranks[1][Part::pipeline], 1);
  EXPECT_DOUBLE_EQ(*whole.mean[Part::bubble], 4);
}

TEST(Breakdown, WhatIsNotMeasuredIsNotThere) {
  EXPECT_TRUE(break_down(store::Result()).empty());
  store::Result r = by_hand(1, 1);
  r.timeline = {interval(0, 0, "matmul", "compute", "forward", 0, 1)};
  const Breakdown b = break_down(r)[0].mean;
  EXPECT_EQ(b[Part::matrix_products], 1.0);
  for (const Part part :
       {Part::attention, Part::recomputation, Part::data, Part::waiting, Part::bubble, Part::loading}) {
    EXPECT_FALSE(b[part]) << key_of(part);
  }
}

// Also if a sweep ended between the timelines and the first block: then the MFU is that of the profiled step.
TEST(Waterfall, PointsAddUpFromThePeakToTheMfu) {
  for (std::uint64_t seed = 0; seed < 200; ++seed) {
    store::Result r =
        test::samples::random_timeline(seed, 1 + static_cast<int>(seed % 4), 1 + static_cast<int>(seed / 4 % 4));
    const CaseBreakdown breakdown = break_down(r)[0];
    const double possible = r.step_seconds[0][0] * r.ranks * r.cases[0].peak_flops_per_rank;
    for (const bool timed : {true, false}) {
      if (!timed) r.blocks[0].status = store::BlockStatus::failed;
      const auto fall = waterfall(r, summarise(r).cases[0], breakdown);
      ASSERT_TRUE(fall);
      EXPECT_EQ(fall->timed, timed);
      double left = 1;
      for (const WaterfallBar& bar : fall->bars) left -= bar.points;
      EXPECT_NEAR(left, fall->mfu, 1e-9) << seed;
      // Without the difference between profiled and timed steps, the rest is the MFU of the profiled step.
      const double of_profiled = timed ? left + fall->bars.back().points : left;
      EXPECT_NEAR(of_profiled, fall->ideal_s / breakdown.mean.step_s, 1e-9) << seed;
      if (!timed) continue;
      EXPECT_NEAR(fall->mfu * possible / r.cases[0].model_flop_per_step, 1, 1e-6);
    }
    r.cases[0].peak_flops_per_rank = 0;
    EXPECT_FALSE(waterfall(r, summarise(r).cases[0], breakdown));
  }
}

TEST(Waterfall, CommunicationIsHeldAgainstTheStatedLinks) {
  store::Result r = test::samples::random_timeline(2, 2, 2);
  r.operations.clear();
  const auto add = [&](int role, const char* kind, const char* group, double limit_s) {
    store::ResultOperations row;
    row.role = role;
    row.kind = kind;
    row.group = group;
    row.operations = 3;
    row.limit_s = limit_s;
    r.operations.push_back(row);
  };
  add(0, "all_reduce", "tensor", 0.2);
  add(0, "all_gather", "tensor", 0.1);
  add(1, "all_reduce", "tensor", 0.1);
  add(0, "send", "pipeline", 0.05);
  add(1, "receive", "pipeline", 0.05);
  add(1, "send", "pipeline", 0.07);
  add(0, "all_reduce", "data", 0);  // unknown
  add(1, "all_reduce", "data", 0.3);
  const auto fall = waterfall(r, summarise(r).cases[0], break_down(r)[0]);
  ASSERT_TRUE(fall);
  const auto roof = [&](Part part) -> std::optional<double> {
    for (const WaterfallBar& bar : fall->bars) {
      if (bar.part == part) return bar.roof_s;
    }
    ADD_FAILURE() << "no bar of " << name_of(part);
    return {};
  };
  EXPECT_NEAR(roof(Part::tensor).value_or(0), 0.2, 1e-12);                  // 0.3 and 0.1
  EXPECT_NEAR(roof(Part::pipeline).value_or(0), (0.05 + 0.07) / 2, 1e-12);  // both ways at once
  EXPECT_FALSE(roof(Part::data));
}

store::ResultInterval on_stream(int rank, const char* stream, const char* kind, double start_s, double end_s,
                                const char* what = "") {
  return test::samples::interval(rank, rank, kind, stream, "backward", start_s, end_s, what);
}

// Two stages whose clocks differ by 3 s: in the file, the second receives before the first sends.
store::Result pipeline() {
  store::Result result;
  result.timeline = {
      on_stream(0, "pipeline", "send", 5, 6, "activations"), on_stream(1, "pipeline", "receive", 2, 3.5, "activations"),
      on_stream(1, "pipeline", "send", 3, 4, "gradients"),   on_stream(0, "pipeline", "receive", 5, 7, "gradients"),
      on_stream(0, "world", "all_reduce", 8, 9, "loss"),     on_stream(0, "world", "record", 9, 9.5, "loss"),
      on_stream(1, "world", "all_reduce", 4, 6, "loss")};
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
    result.timeline.push_back(on_stream(i % 2, "data", "all_reduce", start_s, start_s + 0.5 + i % 3));
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
  result.timeline = {on_stream(0, "compute", "gelu", NAN, 1), on_stream(0, "compute", "gelu", 2, 1),
                     on_stream(0, "compute", "gelu", 0, 1)};
  result.timeline.push_back(result.timeline.back());
  result.timeline.back().case_index = 1;
  EXPECT_EQ(drawn_step(result, 0).intervals.size(), 1u);
  EXPECT_TRUE(drawn_step(result, 7).intervals.empty());
}

}  // namespace
}  // namespace harness::analysis
