#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>

#include "backend/backend.h"
#include "config/experiment.h"
#include "plan/plan.h"
#include "store/result_file.h"
#include "support/errors.h"
#include "support/paths.h"
#include "sweep/recorder.h"

namespace harness::sweep {

namespace {

TEST(AddRecord, WhatConcernsACaseIsANoteOnIt) {
  store::Result result;
  result.cases.resize(3);
  result.cases[2].reason = "4 ranks are idle";
  const store::DoctorRecord doctor{{{-1, "fail", "pcie.width", "node1", 1, "8 of 16 lanes", "", ""},
                                    {1, "fail", "env.devices", "node1", 1, "mlx4 fits nothing here", "", ""},
                                    {2, "info", "env.without_effect", "node1", 1, "it has no effect", "", ""}},
                                   "{}"};
  add_record(result, doctor);
  EXPECT_EQ(result.cases[0].reason, "");
  EXPECT_EQ(result.cases[1].reason, "doctor, env.devices: mlx4 fits nothing here");
  EXPECT_EQ(result.cases[2].reason, "4 ranks are idle; doctor, env.without_effect: it has no effect");
  EXPECT_EQ(result.doctor.findings.size(), 3u);
  EXPECT_EQ(result.doctor.facts, "{}");
}

TEST(NeededSpace, HoldsTheExampleAndLittleMore) {
  const std::string path = test::source_dir() + "/results/example.h5";
  const store::Result example = store::read_result(path, {.rank_seconds = false, .timeline = false});
  config::Experiment experiment = config::load_experiment(example.config_path, example.overrides, example.config_text);
  std::vector<std::string> only;
  for (const store::ResultCase& row : example.cases) only.push_back(row.name);
  const auto needed = [&] { return needed_space(plan::prepare(experiment, example.ranks, only)); };
  const auto bytes = static_cast<std::int64_t>(std::filesystem::file_size(path));
  experiment.measure.auto_steps = false;
  experiment.measure.steps = example.steps;
  const std::int64_t as_it_was = needed();
  EXPECT_GE(as_it_was, bytes);
  EXPECT_LE(as_it_was, 8 * bytes);
  experiment.measure.auto_steps = true;  // up to the maximum
  const std::int64_t of_roles = needed();
  EXPECT_GE(of_roles - as_it_was, (1000 - example.steps) * static_cast<std::int64_t>(example.blocks.size()) * 4 * 4);
  experiment.measure.timeline = config::Timelines::all;
  EXPECT_GT(needed(), of_roles);
  EXPECT_LT(needed(), 4 * of_roles);
}

// 128 ranks, whose timelines rank 0 would have to hold in memory.
TEST(NeededSpace, RefusesMoreTimelinesThanAReaderHolds) {
  const std::string path = test::source_dir() + "/configs/16node.yaml";
  const config::Experiment all = config::load_experiment(path, {"measure.timeline=all"});
  const plan::Plan plan = plan::prepare(all, 128, {});
  EXPECT_THAT(test::error_of([&] { needed_space(plan); }),
              ::testing::HasSubstr("measure.timeline: all would keep up to "));
}

using ::testing::HasSubstr;

// Two cases, ten rounds of one warm-up and nine timed steps. A block of the baseline takes 30 + 10 s, one of the other
// case 30 + 20 s: a round takes 90 s.
Recorder recorder() {
  store::Result planned;
  planned.rounds = 10;
  planned.warmup_steps = 1;
  planned.steps = 9;
  for (const char* name : {"baseline", "ranks=2"}) {
    planned.cases.emplace_back().name = name;
  }
  for (int round = 0; round < planned.rounds; ++round) {
    for (int which = 0; which < 2; ++which) {
      store::ResultBlock& block = planned.blocks.emplace_back();
      block.round = round;
      block.case_index = which;
    }
  }
  Recorder r(std::move(planned));
  r.state(0).set_up_s = r.state(1).set_up_s = 30;
  r.state(0).step_s = 1;
  r.state(1).step_s = 2;
  return r;
}

config::Measure measure(double budget_s, const std::vector<int>& looks = {}) {
  config::Measure m;
  m.rounds = 10;
  m.warmup_steps = 1;
  m.steps = 9;
  m.time_budget_s = budget_s;
  m.looks = looks;
  return m;
}

// Set-up is counted once, and the preparation is part of the budget.
TEST(DecideRounds, AreThoseThatFitTheBudget) {
  struct Row {
    config::Measure measure;
    double prepared_s;
    bool second_case_dropped;
    int rounds;
  };
  for (const Row& row : std::vector<Row>{{measure(100 + 4 * 90 + 10), 100, false, 4},
                                         {measure(1000), 100, false, 10},
                                         {measure(4 * 40 + 10), 0, true, 4},
                                         {measure(5 * 90 + 10, {5, 10}), 0, false, 10}}) {  // ends when all is settled
    Recorder r = recorder();
    if (row.second_case_dropped) r.draft().cases[1].status = store::CaseStatus::failed;
    decide_rounds(r, row.measure, row.prepared_s, false);
    EXPECT_EQ(r.result().rounds, row.rounds);
    EXPECT_EQ(r.result().blocks.size(), 2u * static_cast<std::size_t>(row.rounds));
    const bool reduced = row.rounds < 10;
    ASSERT_EQ(r.result().warnings.size(), reduced ? 1u : 0u);
    if (reduced) {
      EXPECT_THAT(r.result().warnings[0], HasSubstr("10 rounds were reduced to 4"));
    }
  }
}

TEST(DecideRounds, TooFewForAnyVerdictAreRefused) {
  Recorder little = recorder();
  const std::string refused = test::error_of([&] { decide_rounds(little, measure(100 + 3 * 90 + 10), 100, false); });
  EXPECT_THAT(refused, HasSubstr("ends after 3 of 10 rounds, and no verdict is possible before 4"));
  EXPECT_THAT(refused, HasSubstr("All cases take 7.67 min for 4 rounds"));
}

// Its file is written in any case, so that the sweep can be resumed.
TEST(DecideRounds, AStoppedPreparationKeepsThoseThatAVerdictNeeds) {
  Recorder little = recorder();
  decide_rounds(little, measure(100 + 3 * 90 + 10), 100, true);
  EXPECT_EQ(little.result().rounds, 4);
  Recorder looking = recorder();
  decide_rounds(looking, measure(100, {5, 10}), 200, true);
  EXPECT_EQ(looking.result().rounds, 10);
}

TEST(DecideRounds, OneIsNotReducedToOne) {
  Recorder alone = recorder();
  alone.draft().rounds = 1;
  alone.draft().blocks.resize(2);
  alone.draft().cases[1].status = store::CaseStatus::impossible;  // nothing is compared, so no verdict is missed
  decide_rounds(alone, measure(10), 100, false);
  EXPECT_THAT(alone.result().warnings, ::testing::IsEmpty());
  EXPECT_EQ(alone.result().rounds, 1);
}

TEST(DecideSteps, TakeThreeQuartersOfSetUpAndWarmUp) {
  Recorder r = recorder();
  config::Measure m = measure(0);
  EXPECT_FALSE(decide_steps(r, m));
  EXPECT_EQ(m.steps, 9);  // as configured
  m.auto_steps = true;
  EXPECT_TRUE(decide_steps(r, m));
  EXPECT_EQ(m.steps, 23);  // 0.75 · (30 s + 1 s) / 1 s
  EXPECT_EQ(r.result().steps, 23);
  r.state(0).set_up_s = 0.1;
  EXPECT_TRUE(decide_steps(r, m));
  EXPECT_EQ(m.steps, 3);
  r.state(0).step_s = 0;  // the preparation was stopped before the baseline's timeline
  EXPECT_FALSE(decide_steps(r, m));
  EXPECT_EQ(auto_steps(800, 0.031, 1), 1000);
  EXPECT_EQ(auto_steps(800, 0.031, 3500), 596);  // a block has at most 4096 steps
}

}  // namespace

}  // namespace harness::sweep
