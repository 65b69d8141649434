#include "sweep/planned_result.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>

#include "backend/backend.h"
#include "config/experiment.h"
#include "plan/prepare.h"
#include "store/result_file.h"
#include "support/errors.h"
#include "support/paths.h"

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
  config::Experiment experiment = config::load_recorded(example.config_text, example.config_path, example.overrides);
  std::vector<std::string> only;
  for (const store::ResultCase& row : example.cases) only.push_back(row.name);
  const auto needed = [&] { return needed_space(plan::prepare(experiment, example.ranks, only)); };
  const auto bytes = static_cast<std::int64_t>(std::filesystem::file_size(path));
  experiment.measure.auto_steps = false;
  experiment.measure.steps = example.steps;
  const std::int64_t as_it_was = needed();
  EXPECT_GE(as_it_was, bytes);
  EXPECT_LE(as_it_was, 8 * bytes);
  experiment.measure.auto_steps = true;  // as many as it may choose
  const std::int64_t of_roles = needed();
  EXPECT_GE(of_roles - as_it_was, (1000 - example.steps) * static_cast<std::int64_t>(example.blocks.size()) * 4 * 4);
  experiment.measure.timeline = config::Timelines::all;
  EXPECT_GT(needed(), of_roles);
  EXPECT_LT(needed(), 4 * of_roles);
}

// 128 ranks, whose timelines rank 0 would have to hold.
TEST(NeededSpace, RefusesMoreTimelinesThanAReaderHolds) {
  const std::string path = test::source_dir() + "/configs/16node.yaml";
  const config::Experiment all = config::load_experiment(path, {"measure.timeline=all"});
  const plan::Plan plan = plan::prepare(all, 128, {});
  EXPECT_THAT(test::error_of([&] { needed_space(plan); }),
              ::testing::HasSubstr("measure.timeline: all would keep up to "));
}

}  // namespace
}  // namespace harness::sweep
