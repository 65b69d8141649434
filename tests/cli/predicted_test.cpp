#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>
#include <sstream>

#include "cli/cli.h"
#include "support/paths.h"
#include "support/temporary_folder.h"

namespace harness::cli {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

const std::string cluster = test::source_dir() + "/configs/16node.yaml";

struct PlanSaid {
  int exit_code = 0;
  std::string out, err;
};

PlanSaid what_is_said(std::vector<std::string> arguments) {
  std::ostringstream out, err;
  const int exit_code = run_cli(arguments, out, err);
  return {exit_code, out.str(), err.str()};
}

PlanSaid predicted(const std::vector<std::string>& more) {
  std::vector<std::string> arguments{"plan", cluster, "--backend", "sim", "--ranks", "128"};
  arguments.insert(arguments.end(), more.begin(), more.end());
  return what_is_said(arguments);
}

TEST(Predicted, EveryCaseThatChangesTheStepHasAPredictedTime) {
  const PlanSaid plan = predicted({"--set", "sweep.nccl_buffsize=[8 MiB]"});
  ASSERT_EQ(plan.exit_code, 0) << plan.err;
  EXPECT_THAT(plan.out,
              AllOf(HasSubstr("predicted, not measured: harness on CUDA"), HasSubstr("128 ranks on 16 nodes"),
                    HasSubstr("?: the prediction does not know nccl_buffsize"), HasSubstr("too close to call"),
                    HasSubstr("expected error: "), HasSubstr("warning: uncalibrated: calibration harness")));
  EXPECT_THAT(plan.out, AllOf(Not(HasSubstr("blocks in")), Not(HasSubstr("time:"))));  // nothing will be measured
}

// Every replica waits for the slowest of its operations: it takes longer, and how long varies. All else stays.
TEST(Predicted, JitterIsShownBesideTheStepWithoutIt) {
  const auto with = [](const std::vector<std::string>& more) {
    std::vector<std::string> arguments{"plan",    cluster,   "--backend", "sim",
                                       "--ranks", "8",       "--set",     "baseline.global_batch_size=8",
                                       "--only",  "baseline"};
    arguments.insert(arguments.end(), more.begin(), more.end());
    return what_is_said(arguments);
  };
  EXPECT_THAT(with({}).out, Not(HasSubstr("jitter")));
  const PlanSaid plan = with({"--set", "jitter={per_operation: 20 %, seed: 4}"});
  EXPECT_THAT(plan.out, AllOf(HasSubstr("with jitter"), HasSubstr("varies by 20.0 % (jitter, seed 4)"))) << plan.err;
  const auto row_of = [&](const std::string& jitter) {
    return nlohmann::json::parse(with({"--format", "json", "--set", "jitter=" + jitter}).out)["cases"][0];
  };
  const auto row = row_of("{per_operation: 20 %, seed: 4}"), calm = row_of("{per_operation: 0 %}");
  EXPECT_EQ(row["predicted_step_seconds"], calm["predicted_step_seconds"]);
  EXPECT_FALSE(calm.contains("predicted_with_jitter"));
  const auto& jittered = row["predicted_with_jitter"];
  EXPECT_EQ(jittered["draws"], 5);
  EXPECT_GT(jittered["mean_step_seconds"].get<double>(), 1.01 * row["predicted_step_seconds"].get<double>());
  EXPECT_GT(jittered["deviation_seconds"].get<double>(), 0);
  EXPECT_EQ(row_of("{per_operation: 20 %, seed: 4}")["predicted_with_jitter"], jittered);
  EXPECT_NE(row_of("{per_operation: 20 %, seed: 5}")["predicted_with_jitter"], jittered);
}

TEST(Predicted, ProgramsReadTheSameInJson) {
  const PlanSaid plan =
      predicted({"--format", "json", "--set", "calibration=megatron-2022", "--set", "sweep.nccl_buffsize=[8 MiB]"});
  ASSERT_EQ(plan.exit_code, 0) << plan.err;
  const auto json = nlohmann::json::parse(plan.out);
  EXPECT_EQ(json["schema"], "harness-plan");
  EXPECT_EQ(json["calibration"]["file"], "megatron-2022");
  double baseline_s = 0;
  for (const auto& row : json["cases"]) {
    const std::string name = row["name"];
    SCOPED_TRACE(name);
    if (name.starts_with("nccl_buffsize")) {
      EXPECT_THAT(row["not_predicted"].get<std::string>(), HasSubstr("does not know nccl_buffsize"));
      continue;
    }
    const double seconds = row["predicted_step_seconds"];
    const auto& parts = row["predicted_parts"];
    EXPECT_GT(seconds, 0);
    EXPECT_NEAR(parts["compute_seconds"].get<double>() + parts["exposed_communication_seconds"].get<double>() +
                    parts["idle_seconds"].get<double>(),
                seconds, 1e-9);
    if (name == "baseline") baseline_s = seconds;
    const double change = seconds / baseline_s;
    EXPECT_GT(row["expected_error"].get<double>(), 0.02);
    EXPECT_FALSE(row.contains("warnings"));
    EXPECT_EQ(row.contains("predicted_change"), !name.starts_with("baseline"));
    if (row.contains("predicted_change")) {
      EXPECT_NEAR(row["predicted_change"].get<double>(), change - 1, 1e-12);
      EXPECT_EQ(row["too_close_to_call"].get<bool>(),
                std::abs(std::log(change)) < std::log1p(row["expected_change_error"].get<double>()));
    }
    if (name == "overlap_grad_reduce=false") {
      EXPECT_GT(change, 1);
    }
    if (name == "layout={tensor_parallel: 16, pipeline_parallel: 1}") {
      EXPECT_GT(change, 3);
    }
    if (name == "ranks=8") {
      EXPECT_GT(change, 8);
    }
    if (name.starts_with("nccl_algo=")) {
      EXPECT_GE(change, 1);  // by its own model NCCL chooses best
    }
  }
}

TEST(Predicted, WhatLeavesTheMeasuredRangeIsSaid) {
  const auto warnings = [](std::vector<std::string> changes) {
    std::vector<std::string> more{"--only", "baseline", "--set", "calibration=megatron-2022"};
    for (const std::string& change : changes) more.insert(more.end(), {"--set", change});
    const PlanSaid plan = predicted(more);
    EXPECT_EQ(plan.exit_code, 0) << plan.err;
    return plan.out.substr(std::min(plan.out.size(), plan.out.find("expected error")));
  };
  EXPECT_THAT(warnings({}), Not(HasSubstr("warning")));
  EXPECT_THAT(warnings({"hardware=p5"}), Not(HasSubstr("warning")));  // a machine around a GPU that was measured
  EXPECT_THAT(warnings({"hardware=hgx-b200"}), HasSubstr("uncalibrated: no measured step ran on HGX B200"));
  EXPECT_THAT(warnings({"model.sequence=4096"}), HasSubstr("sequence length 4096 lies outside of what was measured"));
  EXPECT_THAT(warnings({"baseline.nccl_buffsize=8 MiB"}), HasSubstr("it takes no account of nccl_buffsize"));
}

TEST(Predicted, SettingsWithWhichNcclEndsHaveNoPrediction) {
  const PlanSaid plan = predicted({"--set", "sweep.nccl_algo=[AllReduce:PAT]"});
  ASSERT_EQ(plan.exit_code, 0) << plan.err;
  EXPECT_THAT(plan.out, HasSubstr("?: NCCL ends with an error: nccl_algo AllReduce:PAT"));
}

TEST(Predicted, Fp16RunsAtTheRateOfBf16) {
  const auto seconds = [](const std::string& precision) {
    const PlanSaid plan = predicted({"--format", "json", "--only", "baseline", "--set", "precision=" + precision});
    EXPECT_EQ(plan.exit_code, 0) << plan.err;
    return nlohmann::json::parse(plan.out)["cases"][0]["predicted_step_seconds"].get<double>();
  };
  EXPECT_EQ(seconds("fp16"), seconds("bf16"));
  EXPECT_THAT(what_is_said({"plan", cluster, "--ranks", "128", "--set", "precision=fp16"}).err,
              HasSubstr("backend cuda has no fp16"));
}

double baseline_seconds(std::vector<std::string> changes) {
  std::vector<std::string> more{"--format", "json", "--only", "baseline"};
  for (const std::string& change : changes) more.insert(more.end(), {"--set", change});
  const PlanSaid plan = predicted(more);
  EXPECT_EQ(plan.exit_code, 0) << plan.err;
  return nlohmann::json::parse(plan.out)["cases"][0]["predicted_step_seconds"];
}

TEST(Predicted, SeparateKernelsTakeLonger) {
  EXPECT_GT(baseline_seconds({"fusion=false"}), 1.02 * baseline_seconds({}));
}

// Megatron-LM of 2022 reduces gradients in half precision anyway: they do not become a quarter.
TEST(Predicted, GradientsAreHalvedOnce) {
  const std::string theirs = "calibration=megatron-2022", late = "overlap_grad_reduce=false";
  const double seconds = baseline_seconds({theirs, late});
  EXPECT_GE(baseline_seconds({theirs, late, "grad_reduce_precision=bf16"}), seconds);
  EXPECT_LT(baseline_seconds({late, "grad_reduce_precision=bf16"}), 0.98 * baseline_seconds({late}));
}

TEST(Predicted, AMeasuredPlanIsJsonWithoutPredictions) {
  const PlanSaid plan = what_is_said({"plan", cluster, "--ranks", "128", "--format", "json"});
  ASSERT_EQ(plan.exit_code, 0) << plan.err;
  const auto json = nlohmann::json::parse(plan.out);
  EXPECT_EQ(json["cases"][0]["name"], "baseline");
  EXPECT_GT(json["cases"][0]["memory_bytes"].get<double>(), 1e9);
  EXPECT_FALSE(json["cases"][0].contains("predicted_step_seconds"));
  EXPECT_FALSE(json.contains("calibration"));
}

TEST(Predicted, WhatIsNotKnownOfTheMachineIsAskedFor) {
  const auto error = [](const std::string& change) { return predicted({"--only", "baseline", "--set", change}).err; };
  EXPECT_THAT(error("hardware=none"), HasSubstr("a prediction needs the hardware"));
  EXPECT_THAT(error("hardware=mi300x"), AllOf(HasSubstr("found 'mi300x'"), HasSubstr("docs/adding.md")));
  EXPECT_THAT(error("hardware=l40s"), HasSubstr("fabric: {node: 400 GB/s}"));
  EXPECT_THAT(error("calibration=megatron-2020"),
              AllOf(HasSubstr("calibration: found 'megatron-2020'"), HasSubstr("megatron-2022")));
}

TEST(Predicted, ACalibrationThatIsWrongNamesItsPlace) {
  const test::TemporaryFolder folder;
  const std::string mine = folder.write("mine.yaml",
                                        "name: mine\nsource: measured\nproducts: {share: 120 %, ramp: 128}\n"
                                        "software: {operations: {matmull: {host: 2}}}\n");
  EXPECT_THAT(predicted({"--set", "calibration=" + mine}).err,
              AllOf(HasSubstr("mine.yaml:3:"), HasSubstr("up to 100 %"), HasSubstr("matmul"), HasSubstr("memory")));
}

std::string file_text(const std::string& path) {
  std::ifstream file(path);
  return {std::istreambuf_iterator<char>(file), {}};
}

TEST(Predicted, WhatACalibrationWasComparedWithIsReadWithItsPlaces) {
  const test::TemporaryFolder folder;
  const std::string theirs = file_text(test::source_dir() + "/configs/calibration/megatron-2022.yaml");
  const std::size_t renewed = theirs.find("# Written by `make accuracy`");
  ASSERT_NE(renewed, std::string::npos);
  const auto error = [&](const std::string& end) {
    const std::string mine = folder.write("mine.yaml", theirs.substr(0, renewed) + end);
    return predicted({"--only", "baseline", "--set", "calibration=" + mine}).err;
  };
  EXPECT_EQ(error(theirs.substr(renewed)), "");
  EXPECT_EQ(error(""), "");  // nothing was compared
  EXPECT_EQ(error("validated_as: megatron-2022\n"), "");
  EXPECT_THAT(error("validated_as: megatron-2020\n"), HasSubstr("found 'megatron-2020'"));
  EXPECT_THAT(error("calibrated: {gpus: h100, ranks: 8, hidden: 4 to 2, sequence: 1 to 2, message_bytes: 1 to 2}\n"),
              AllOf(HasSubstr("calibrated.gpus: expected a list"),
                    HasSubstr("found '8'; expected a range such as 2 to 512"), HasSubstr("calibrated.hidden: ")));
  EXPECT_THAT(error("validation: {steps: 3, step_error: 120 %}\n"),
              AllOf(HasSubstr("step_error: found '120 %'"), HasSubstr("change_error")));
}

// The table and the calibration are written by one command.
TEST(Predicted, TheErrorsOfACalibrationAreThoseOfTheTable) {
  const std::string table = file_text(test::source_dir() + "/docs/accuracy.md");
  const auto json = nlohmann::json::parse(
      predicted({"--format", "json", "--only", "micro_batch_size=2", "--set", "calibration=megatron-2022"}).out);
  const auto& row = json["cases"].back();
  const auto mean_of_all = [&](std::size_t from) {
    std::istringstream line(table.substr(table.find("| all |", from)));
    std::string cell;
    for (int i = 0; i < 5; ++i) std::getline(line, cell, '|');  // "", set, number, median, mean
    return std::stod(cell) / 100;
  };
  EXPECT_NEAR(row["expected_error"].get<double>(), mean_of_all(0), 1e-9);
  EXPECT_NEAR(row["expected_change_error"].get<double>(), mean_of_all(table.find("## Changes")), 1e-9);
}

}  // namespace
}  // namespace harness::cli
