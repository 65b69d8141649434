#include "plan/plan.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <tuple>

#include "base/text.h"
#include "small_experiment.h"
#include "support/errors.h"
#include "support/paths.h"

namespace harness::plan {
namespace {

using test::add_change;
using test::names_of;
using test::small_experiment;
using ::testing::HasSubstr;

std::string why_not(const config::Experiment& e, int ranks) {
  return divide_ranks(e.model, e.baseline, ranks).why_impossible;
}

TEST(DivideRanks, DerivesTheRest) {
  config::Experiment e = small_experiment();
  e.baseline.layout = {{program::Axis::tensor, 2}, {program::Axis::pipeline, 2}};
  Division division = divide_ranks(e.model, e.baseline, 16);
  EXPECT_EQ(division.why_impossible, "");
  EXPECT_EQ(division.layout.size, (std::array<int, program::axis_count>{2, 1, 4, 2}));
  e.baseline.ranks = 4;
  division = divide_ranks(e.model, e.baseline, 16);
  EXPECT_EQ(division.why_impossible, "");
  EXPECT_EQ(division.layout.size, (std::array<int, program::axis_count>{2, 1, 1, 2}));
}

// Planning these took minutes and gigabytes, and ended with std::bad_alloc.
TEST(DivideRanks, StepsThatAreTooLongToPlan) {
  config::Experiment e = small_experiment();
  e.baseline.micro_batch_size = 1;
  e.baseline.global_batch_size = 100000;
  EXPECT_THAT(why_not(e, 1), HasSubstr("* micro-batches 100000 is more than the 65536"));
  e.baseline.micro_batch_size = 100000;
  EXPECT_EQ(why_not(e, 1), "");
  e.baseline.micro_batch_size = e.baseline.global_batch_size = std::int64_t{1} << 31;
  e.model.sequence = 1000000;
  EXPECT_THAT(why_not(e, 1), HasSubstr("micro_batch_size 2147483648 * sequence 1000000 is too large"));
  e = small_experiment();
  e.model.layers = 100000;
  EXPECT_THAT(why_not(e, 1), HasSubstr("layers 100000 * micro-batches"));
  e.model.layers = e.baseline.layout[program::Axis::pipeline] = 1024;
  EXPECT_EQ(why_not(e, 1024), "");
  e.model.layers = e.baseline.layout[program::Axis::pipeline] = 2048;
  EXPECT_EQ(why_not(e, 2048), "pipeline_parallel 2048 is more than the 1024 stages that harness plans");
  e.model.heads = e.model.hidden = e.model.vocab = e.model.ffn = 1 << 16;
  e.baseline.layout = {{program::Axis::tensor, 1 << 16}, {program::Axis::pipeline, 1 << 16}};
  EXPECT_THAT(why_not(e, 4), HasSubstr("is more than layers"));  // no integer overflow
}

TEST(DivideRanks, SaysWhatDoesNotFitAndWhatWould) {
  config::Experiment e = small_experiment();
  e.baseline.layout[program::Axis::tensor] = 3;
  EXPECT_EQ(why_not(e, 4), "tensor_parallel 3 does not divide heads 4; nearest that does: 2 or 4");
  e.baseline.layout[program::Axis::tensor] = 8;
  EXPECT_EQ(why_not(e, 8), "tensor_parallel 8 does not divide heads 4; nearest that does: 4");
  e.baseline.layout[program::Axis::tensor] = 4;
  e.model.vocab = 2050;
  EXPECT_EQ(why_not(e, 4), "tensor_parallel 4 does not divide vocab 2050; pad the vocabulary to 2052");

  e = small_experiment();
  e.baseline.layout[program::Axis::pipeline] = 3;
  EXPECT_EQ(why_not(e, 3), "");  // stages may have different lengths
  e.baseline.layout[program::Axis::pipeline] = 5;
  EXPECT_EQ(why_not(e, 5), "pipeline_parallel 5 is more than layers 4: a stage has at least one layer");
  e.baseline.layout[program::Axis::pipeline] = 4;
  EXPECT_EQ(why_not(e, 6), "tensor_parallel 1 * pipeline_parallel 4 = 4 does not divide 6 ranks");

  e = small_experiment();
  EXPECT_EQ(why_not(e, 3),
            "data_parallel 3 (3 ranks / 1) does not divide global_batch_size 16; nearest batches: 15 or 18");
  EXPECT_THAT(why_not(e, 32), HasSubstr("nearest batches: 32"));
  e.baseline.micro_batch_size = 3;
  EXPECT_EQ(why_not(e, 2),
            "micro_batch_size 3 does not divide the 8 sequences of a replica (global_batch_size 16 / data_parallel 2); "
            "nearest that does: 2 or 4");
  e.baseline.micro_batch_size = 16;
  EXPECT_THAT(why_not(e, 2), HasSubstr("nearest that does: 8"));
  e = small_experiment();
  e.baseline.ranks = 8;
  EXPECT_EQ(why_not(e, 4), "ranks is 8, but the job has only 4");
}

TEST(Plan, HasTheBaselineTwiceAndEveryChange) {
  config::Experiment e = small_experiment();
  add_change(e, "micro_batch_size", "2");
  add_change(e, "layout", "{tensor_parallel: 2}");
  const Plan plan = make_plan(e, 4);
  ASSERT_EQ(names_of(plan), (std::vector<std::string>{"baseline", "baseline_again", "micro_batch_size=2",
                                                      "layout={tensor_parallel: 2, pipeline_parallel: 1}"}));
  EXPECT_EQ(plan.cases[1].settings, plan.cases[0].settings);
  EXPECT_EQ(plan.cases[2].micro_batches, 2);
  EXPECT_EQ(plan.cases[0].micro_batches, 4);
  EXPECT_EQ(plan.cases[3].layout[program::Axis::data], 2);
  EXPECT_EQ(plan.cases[3].micro_batches, 8);
  EXPECT_EQ(plan.schedule.size(), 16u);
}

TEST(Plan, ImpossibleCasesKeepTheirPlaceAndAreNotRun) {
  config::Experiment e = small_experiment();
  add_change(e, "layout", "{tensor_parallel: 3}");
  add_change(e, "ranks", "8");
  add_change(e, "ranks", "2");
  const Plan plan = make_plan(e, 4);
  ASSERT_EQ(plan.cases.size(), 5u);
  EXPECT_THAT(plan.cases[2].impossible, HasSubstr("heads 4"));
  EXPECT_NE(plan.cases[3].impossible, "");
  EXPECT_EQ(plan.cases[4].impossible, "");
  EXPECT_EQ(plan.cases[4].layout.ranks(), 2);
  EXPECT_EQ(plan.schedule.size(), 12u);
  for (const Slot& slot : plan.schedule) EXPECT_EQ(plan.cases[slot.case_index].impossible, "");
}

TEST(Plan, AnImpossibleBaselineIsAnError) {
  config::Experiment e = small_experiment();
  e.baseline.layout[program::Axis::tensor] = 3;
  EXPECT_EQ(test::error_of([&] { make_plan(e, 3); }),
            "small.yaml: the baseline cannot run on 3 ranks: tensor_parallel 3 does not divide heads 4; nearest that "
            "does: 2 or 4");
  EXPECT_NE(test::error_of([&] { make_plan(e, 0); }), "");
  const std::string path = test::source_dir() + "/configs/laptop.yaml";
  EXPECT_THAT(test::error_of([&] { make_plan(config::load_experiment(path), 3); }),
              HasSubstr("laptop.yaml:14:11: the baseline cannot run on 3 ranks"));
  EXPECT_THAT(test::error_of([&] { make_plan(config::load_experiment(path, {"layout={tensor_parallel: 3}"}), 3); }),
              HasSubstr("--set layout={tensor_parallel: 3}: the baseline cannot run"));
}

TEST(Plan, TheBaselinesNumberOfRanksIsTheBaseline) {
  config::Experiment e = small_experiment();
  add_change(e, "ranks", "2");
  add_change(e, "ranks", "4");
  const auto last_case = [&](int ranks) { return make_plan(e, ranks).cases.back().name; };
  EXPECT_EQ(make_plan(e, 4).cases.size(), 3u);
  EXPECT_EQ(last_case(4), "ranks=2");
  EXPECT_EQ(make_plan(e, 8).cases.size(), 4u);
  e.changes.pop_back();
  EXPECT_EQ(last_case(2), "baseline_again");
  e.baseline.ranks = 2;
  e.changes.clear();
  add_change(e, "ranks", "2");
  EXPECT_EQ(last_case(4), "baseline_again");
}

TEST(Plan, OnlySomeCases) {
  config::Experiment e = small_experiment();
  add_change(e, "micro_batch_size", "2");
  add_change(e, "micro_batch_size", "4");
  add_change(e, "overlap_grad_reduce", "false");
  const auto names = [&](const std::vector<std::string>& only) { return names_of(make_plan(e, 4, only)); };
  using Names = std::vector<std::string>;
  EXPECT_EQ(names({"micro_batch_size=4"}), (Names{"baseline", "baseline_again", "micro_batch_size=4"}));
  EXPECT_EQ(names({"micro_batch_size"}),
            (Names{"baseline", "baseline_again", "micro_batch_size=2", "micro_batch_size=4"}));
  EXPECT_EQ(names({"baseline"}), (Names{"baseline", "baseline_again"}));
  EXPECT_EQ(names({}).size(), 5u);
  EXPECT_THAT(test::error_of([&] { names({"micro_batch_size=3"}); }), HasSubstr("did you mean micro_batch_size=2?"));
  EXPECT_THAT(test::error_of([&] { names({"foo"}); }),
              HasSubstr("variables: micro_batch_size, overlap_grad_reduce; cases: baseline, baseline_again, "
                        "micro_batch_size=2, micro_batch_size=4, overlap_grad_reduce=false"));
}

Plan plan_of(int cases, int rounds, std::uint64_t seed) {
  config::Experiment e = small_experiment();
  e.baseline.global_batch_size = 1 << 16;
  e.model.layers = 1;  // makes room for as many micro-batches
  e.measure.rounds = rounds;
  e.measure.seed = seed;
  for (int i = 1; i < cases - 1; ++i) add_change(e, "micro_batch_size", std::to_string(1 << i));
  return make_plan(e, 1);
}

// Each name is reported once, however many cases set it.
TEST(Plan, EnvironmentNamesThatNcclDoesNotReadAreWarnedOfOnce) {
  config::Experiment e = small_experiment();
  e.measure.rounds = 6;
  e.baseline.env = {{"NCCL_IB_TIMEOT", "22"}, {"NCCL_IB_HCA", "mlx5"}};
  add_change(e, "env", "{NCCL_BLOCKING_WAIT: 1}");
  add_change(e, "micro_batch_size", "2");
  const std::vector<std::string> warnings = warnings_of(make_plan(e, 4));
  EXPECT_THAT(warnings, ::testing::UnorderedElementsAre(HasSubstr("NCCL_IB_TIMEOT"), HasSubstr("NCCL_BLOCKING_WAIT")));
}

TEST(Schedule, EveryRoundHasEveryCaseOnce) {
  for (const int n : {2, 3, 7, 12}) {
    const Plan plan = plan_of(n, 3 * n + 1, 5);
    ASSERT_EQ(plan.schedule.size(), static_cast<std::size_t>(n * (3 * n + 1)));
    for (std::size_t i = 0; i < plan.schedule.size(); ++i) {  // in the order of execution
      EXPECT_EQ(plan.schedule[i].round, static_cast<int>(i) / n);
      EXPECT_EQ(plan.schedule[i].position, static_cast<int>(i) % n);
    }
    std::set<std::pair<int, std::size_t>> seen;
    for (const Slot& s : plan.schedule) EXPECT_TRUE(seen.insert({s.round, s.case_index}).second);
  }
}

TEST(Schedule, OverAsManyRoundsAsCasesEveryCaseStandsOnceAtEveryPosition) {
  for (const int n : {2, 3, 7, 12}) {
    std::set<std::tuple<int, std::size_t, int>> seen;
    for (const Slot& s : plan_of(n, 3 * n, 9).schedule) {
      EXPECT_TRUE(seen.insert({s.round / n, s.case_index, s.position}).second) << n;
    }
  }
}

TEST(Schedule, AnEvenNumberOfCasesFollowEachOtherOnceEach) {
  for (const int n : {2, 4, 12}) {
    const auto schedule = plan_of(n, n, 3).schedule;
    std::set<std::pair<std::size_t, std::size_t>> seen;
    for (std::size_t i = 1; i < schedule.size(); ++i) {
      if (schedule[i].position == 0) continue;
      EXPECT_TRUE(seen.insert({schedule[i - 1].case_index, schedule[i].case_index}).second) << n;
    }
    EXPECT_EQ(seen.size(), static_cast<std::size_t>(n * (n - 1)));
  }
}

std::vector<std::size_t> order_of(const Plan& plan) {
  std::vector<std::size_t> order;
  for (const Slot& s : plan.schedule) order.push_back(s.case_index);
  return order;
}

TEST(Schedule, DependsOnTheSeedAlone) {
  EXPECT_EQ(order_of(plan_of(6, 12, 1)), order_of(plan_of(6, 12, 1)));
  EXPECT_NE(order_of(plan_of(6, 12, 1)), order_of(plan_of(6, 12, 2)));
  const auto order = order_of(plan_of(6, 12, 1));
  EXPECT_NE(std::vector(order.begin(), order.begin() + 36), std::vector(order.begin() + 36, order.end()));
  // The order is the same on every machine and with every standard library: a result that is resumed elsewhere keeps
  // its order.
  EXPECT_EQ(order_of(plan_of(4, 2, 1)), (std::vector<std::size_t>{0, 3, 2, 1, 1, 2, 3, 0}));
}

TEST(Schedule, EveryOrderOfTheFirstRoundIsAsLikely) {
  std::map<std::vector<std::size_t>, int> times;
  for (std::uint64_t seed = 0; seed < 6000; ++seed) ++times[order_of(plan_of(3, 1, seed))];
  ASSERT_EQ(times.size(), 6u);
  // Binomial(6000, 1/6): mean 1000, standard deviation 28.9; the seeds are fixed, so this cannot flicker.
  for (const auto& [order, n] : times) EXPECT_NEAR(n, 1000, 120);
}

TEST(Plan, NotesOfEveryCaseWhetherItsCompressionSaves) {
  config::Experiment e = small_experiment();
  config::find_variable("grad_compression")->parse(e.baseline, "topk");
  add_change(e, "grad_compression_ratio", "50 %");
  add_change(e, "grad_compression", "none");
  const auto notes = [&](const char* name) {
    const Plan plan = make_plan(e, 4);
    return std::ranges::find(plan.cases, name, &PlannedCase::name)->notes;
  };
  EXPECT_THAT(notes("baseline"), ::testing::IsEmpty());
  EXPECT_THAT(notes("grad_compression_ratio=50 %"), ::testing::ElementsAre(HasSubstr("sends more than it saves")));
  EXPECT_THAT(notes("grad_compression=none"), ::testing::IsEmpty());
  config::find_variable("grad_compression_ratio")->parse(e.baseline, "30 %");
  EXPECT_THAT(notes("baseline"), ::testing::ElementsAre(HasSubstr("sends more than it saves")));
}

TEST(DivideRanks, WhatACollectiveNeeds) {
  config::Settings s;
  s.workload = "collective";
  const auto why = [&](int ranks) { return divide_ranks({}, s, ranks).why_impossible; };
  EXPECT_EQ(why(4), "");
  EXPECT_EQ(divide_ranks({}, s, 4).layout[program::Axis::data], 4);
  EXPECT_THAT(why(1), HasSubstr("sends nothing; give the job 2 ranks or more"));
  s.collective = config::CollectiveKind::all_gather;
  s.message_bytes = 100;
  EXPECT_THAT(why(3), HasSubstr("3 equal parts of elements of 4 B each; nearest that is: 96 B or 108 B"));
  s.precision = config::Precision::bf16;
  s.message_bytes = 102;
  EXPECT_EQ(why(3), "");
  s.collective_over = config::CollectiveOver::tensor;
  EXPECT_THAT(why(3), HasSubstr("over tensor of one rank sends nothing; give another layout"));
  s.layout = {{program::Axis::tensor, 2}, {program::Axis::pipeline, 2}};
  s.collective = config::CollectiveKind::send_recv;
  EXPECT_EQ(why(8), "");
  s.collective_over = config::CollectiveOver::world;
  EXPECT_THAT(why(8), HasSubstr("along one axis"));
  EXPECT_THAT(why(6), HasSubstr("does not divide 6 ranks"));
  s.collective = config::CollectiveKind::all_reduce;
  s.repetitions = 100;
  EXPECT_THAT(why(8), HasSubstr("at most 80 repetitions, or in_place: false"));
  s.collective = config::CollectiveKind::reduce_scatter;
  s.message_bytes = 160;
  s.repetitions = 250;
  EXPECT_EQ(why(8), "");
  s.repetitions = 251;
  EXPECT_THAT(why(8), HasSubstr("251 sums in place exceed what bf16 tells apart; at most 250 repetitions"));
  s.in_place = false;
  EXPECT_EQ(why(8), "");
  s.collective = config::CollectiveKind::all_reduce;
  EXPECT_EQ(why(8), "");
  s.message_bytes = std::int64_t{1} << 61;
  EXPECT_THAT(why(8), HasSubstr("too large: no buffer is as large"));
}

}  // namespace
}  // namespace harness::plan
