#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>

#include "analysis/cases.h"
#include "analysis/summary.h"
#include "base/text.h"
#include "cli/plan.h"
#include "plan/plan.h"
#include "said.h"
#include "support/errors.h"
#include "support/paths.h"
#include "workloads/workload.h"

namespace harness::cli {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

// A sweep with the settings that only a measurement uses: looks and a time budget.
constexpr const char* small_cluster = R"(name: small
backend: sim
hardware: h100-sxm
model: gpt3-125m
baseline: {precision: bf16, micro_batch_size: 1, global_batch_size: 64, layout: {tensor_parallel: 1, pipeline_parallel: 1}}
sweep:
  micro_batch_size: [2, 4]
  layout: [{tensor_parallel: 2}, {pipeline_parallel: 2}]
  overlap_grad_reduce: [false]
measure: {until: settled, time_budget: 1 s}
)";

class PredictedSweep : public ::testing::Test {
 protected:
  std::string run(SweepOptions options) {
    options.config = config_;
    if (options.output.empty()) options.output = file_;
    const Said said = simulate(options);
    exit_code_ = said.code;
    progress_ = said.err;
    return said.out;
  }
  static SweepOptions on(int ranks) {
    SweepOptions options;
    options.ranks = ranks;
    return options;
  }
  // Uses a calibration that was compared with enough steps to resolve small changes.
  SweepOptions well_known(int ranks, const std::string& message_bytes = "1 to 1000000000000") {
    std::string text = test::text_of(test::source_dir() + "/configs/calibration/harness.yaml");
    text +=
        "changes: {error: 1 %, error_90: 2 %}\n"
        "errors: [{id: a, gpu: h100-sxm, group: a, lab: own, error: 1 %}]\n"
        "calibrated: {gpus: [h100-sxm], ranks: 1 to 4096, hidden: 1 to 65536, sequence: 1 to 65536, "
        "message_bytes: " +
        message_bytes + "}\n";
    SweepOptions options = on(ranks);
    options.overrides = {"calibration=" + folder_.write("known.yaml", text)};
    return options;
  }
  std::string said(const std::vector<std::string>& arguments) {
    const Said said = say(arguments);
    exit_code_ = said.code;
    return said.all();
  }

  test::TemporaryFolder folder_;
  std::string config_ = folder_.write("small.yaml", small_cluster);
  std::string file_ = std::filesystem::path(config_).replace_extension("h5").string();
  std::string progress_;  // from the last sweep
  int exit_code_ = -1;
};

TEST_F(PredictedSweep, StandsBesidePublishedSteps) {
  SweepOptions options = on(8);
  options.overrides = {"hardware=a100-sxm-80gb"};
  run(options);
  const std::string published = "published for a100-sxm-80gb in bf16: ", yours = "; yours, predicted: ";
  const auto planned = [&](const std::string& hardware, const std::string& backend) {
    return unwrapped(
        said({"plan", config_, "--ranks", "8", "--set", "hardware=" + hardware, "--set", "backend=" + backend}));
  };
  for (const auto& screen :
       Commands{{"show", file_}, {"show", "-v", file_}, {"report", file_, "--format", "md", "-o", "-"}}) {
    EXPECT_THAT(unwrapped(said(screen)), AllOf(HasSubstr("Baseline: " + published), HasSubstr(yours)));
  }
  EXPECT_THAT(planned("a100-sxm-80gb", "sim"), AllOf(HasSubstr(published), HasSubstr(yours)));
  EXPECT_THAT(planned("a100-sxm-80gb", "cuda"), AllOf(HasSubstr(published), Not(HasSubstr("yours"))));
  EXPECT_THAT(planned("l40s", "sim"), Not(HasSubstr("published for")));
  EXPECT_THAT(said({"show", test::source_dir() + "/results/example.h5"}), Not(HasSubstr("published for")));
}

// Plan and result agree, also on which changes are too close to call, and both respect measure.smallest_effect.
TEST_F(PredictedSweep, TheFileHoldsWhatThePlanPredicts) {
  std::vector<int> close;
  for (const std::string smallest : {"1 %", "90 %"}) {
    SweepOptions options = well_known(16);
    options.overrides.push_back("measure.smallest_effect=" + smallest);
    options.force = true;
    EXPECT_THAT(run(options),
                AllOf(HasSubstr("Predicted, not measured. "), HasSubstr("predicted, not measured. Expected error: ")));
    EXPECT_EQ(exit_code_, 0);
    const store::Result result = store::read_result(file_);
    const analysis::Summary summary = analysis::summarise(result);
    EXPECT_EQ(result.state, store::RunState::complete);
    EXPECT_EQ(result.nodes, 2);
    const config::Experiment experiment = config::load_experiment(config_, options.overrides);
    const auto predicted = predict_cases(
        plan::prepare(experiment, 16, {}, plan::Processes::as_needed, planned_topology(experiment, 16, 0)));
    ASSERT_EQ(summary.cases.size(), predicted.size());
    ASSERT_EQ(summary.cases.size(), 6U);  // without a copy of the baseline, which would be identical
    close.push_back(0);
    for (std::size_t i = 0; i < predicted.size(); ++i) {
      SCOPED_TRACE(summary.cases[i].name);
      EXPECT_EQ(summary.cases[i].blocks, 1);
      EXPECT_FLOAT_EQ(summary.cases[i].step_seconds, predicted[i].step->step_s);
      EXPECT_EQ(predicted[i].too_close_to_call,
                summary.cases[i].judgement.reason == analysis::Reason::too_close_to_call);
      close.back() += predicted[i].too_close_to_call ? 1 : 0;
    }
  }
  EXPECT_LT(close[0], close[1]);
  EXPECT_LT(close[0], 5);
}

// As in the plan, also messages larger than any that was measured make the expected error larger.
TEST_F(PredictedSweep, ExpectsLargerErrorsBeyondTheMessagesThatWereMeasured) {
  const auto expected_error = [&](const SweepOptions& options) {
    run(options);
    return value_of(store::read_result(file_).identity, "expected_error");
  };
  EXPECT_THAT(expected_error(well_known(16)), HasSubstr("tier A"));
  SweepOptions beyond = well_known(16, "1 to 4");
  beyond.force = true;
  EXPECT_THAT(expected_error(beyond), HasSubstr("tier E"));
}

TEST_F(PredictedSweep, ItsTimelineIsAWholeStepOfEveryRole) {
  run(on(16));
  const store::Result result = store::read_result(file_);
  for (const store::ResultSplit& split : result.splits)
    EXPECT_NEAR(split.compute_s + split.exposed_s + split.idle_s, split.step_s, 1e-9 * split.step_s);
  EXPECT_EQ(result.splits.size(), 6U * 16);
  const config::Experiment experiment = config::load_experiment(config_);
  const plan::Plan planned = plan::prepare(experiment, 16, {});
  for (std::int32_t i = 0; i < result.case_count(); ++i) {
    const program::ProgramSet set =
        program::lower(workloads::build_programs(experiment.model, planned.cases[i].settings, planned.cases[i].layout),
                       config::fused_for(experiment, planned.cases[i].settings));
    std::size_t operations = 0;
    for (const program::Program& role : set.roles) operations += role.step.size();
    EXPECT_EQ(std::ranges::count(result.timeline, i, &store::ResultInterval::case_index), operations);
  }
}

TEST_F(PredictedSweep, SaysWhereverItIsReadThatNothingWasMeasured) {
  run(on(16));
  for (const auto& reader : Commands{{"show", file_},
                                     {"show", "--breakdown", file_},
                                     {"report", "--format", "md", "-o", "-", file_},
                                     {"report", "-o", "-", file_},
                                     {"export", "--format", "megatron", file_},
                                     {"compare", file_, file_, "--anyway"}}) {
    SCOPED_TRACE(reader[0]);
    const std::string text = said(reader);
    EXPECT_THAT(
        text, AllOf(HasSubstr("redicted, not measured"), Not(HasSubstr("proven change:")), Not(HasSubstr("Whiskers"))));
  }
  const auto json = nlohmann::json::parse(said({"show", "--format", "json", file_}));
  for (const auto& row : json["cases"]) {
    const std::string verdict = row["judgement"];
    EXPECT_THAT(verdict, ::testing::AnyOf("predicted", "too close to call", "(baseline)"));
  }
}

TEST_F(PredictedSweep, WhatItIsWorthIsPredictedToo) {
  SweepOptions options = on(16);
  options.overrides = {"combine=[{precision: bf16, micro_batch_size: 4}]", "baseline.precision=fp32",
                       "sweep={overlap_grad_reduce: [false]}", "measure={}"};
  run(options);
  ASSERT_EQ(exit_code_, 0) << progress_;
  const std::string shown = said({"show", file_, "--cost", "2", "--run-tokens", "300e9"});
  EXPECT_THAT(shown, AllOf(HasSubstr("Predicted, not measured: the tokens/s"), HasSubstr(" recovered"),
                           Not(HasSubstr("the measured tokens/s")), Not(HasSubstr("proven")),
                           Not(HasSubstr("nothing to save"))));
}

// With a calibration measured on CPU cores the step is one of CPU cores, and every reader refers to ranks.
TEST_F(PredictedSweep, OfCpuCoresHasNoNumbersOfGpus) {
  std::string cores = test::text_of(test::source_dir() + "/configs/calibration/harness.yaml");
  cores += "backend: cpu\n";
  const std::string calibration = folder_.write("cores-calibration.yaml", cores);
  SweepOptions options = on(16);
  options.overrides = {"calibration=" + calibration, "cost={per_gpu_hour: 2, run: {tokens: 300e9}}",
                       "baseline.allreduce_algorithm=ring"};
  run(options);
  ASSERT_EQ(exit_code_, 0) << progress_;
  const store::Result result = store::read_result(file_);
  EXPECT_EQ(result.backend, "sim");
  EXPECT_EQ(result.stands_for, "cpu");
  for (const auto& reader : Commands{{"show", "--breakdown", file_},
                                     {"report", "--format", "md", "-o", "-", file_},
                                     {"compare", file_, file_, "--anyway"}}) {
    SCOPED_TRACE(reader[0]);
    std::string text = said(reader);
    text = text.substr(0, text.find("name: small"));  // the embedded configuration may contain anything
    EXPECT_THAT(text, Not(HasSubstr("/GPU")));
  }
  EXPECT_THAT(said({"show", file_}), AllOf(HasSubstr("/rank"), HasSubstr("nothing here is about a GPU")));
  const auto json = nlohmann::json::parse(said({"show", "--format", "json", file_}));
  EXPECT_EQ(json["stands_for"], "cpu");
  EXPECT_EQ(json["cost"]["priced"], "rank");
  EXPECT_TRUE(json["cases"][0]["tflops_per_gpu"].is_null());
}

// Readers show the comparison from the file that a sweep wrote, and JSON has the diagnosis.
TEST_F(PredictedSweep, WhatIsWrongIsNamed) {
  config_ = folder_.write("faulty.yaml", std::string(small_cluster) + "faults: {slow_gpu: {rank: 11, speed: 50 %}}\n");
  run(on(16));
  const std::string cause = "rank 11 (simulated-1) computes at 50 % of its clock (slow_gpu)";
  for (const auto& reader : Commands{{"show", "--breakdown", "--format", "md", file_},
                                     {"report", "--format", "md", "-o", "-", file_},
                                     {"report", "-o", "-", file_}}) {
    EXPECT_THAT(said(reader), HasSubstr("redicted with its faults against predicted without"));
  }
  const auto json = nlohmann::json::parse(said({"show", "--breakdown", "--format", "json", file_}));
  EXPECT_THAT(json["prediction"]["diagnosis"]["text"].get<std::string>(), HasSubstr(cause));
  EXPECT_EQ(json["prediction"]["diagnosis"]["causes"][0]["fault"], "slow_gpu");
  EXPECT_EQ(json["prediction"]["cases"].size(), 6U);
}

// One job with its ranks dealt to the nodes one by one, and node by node: the file's node data follow.
TEST_F(PredictedSweep, SaysOfNodesWhatAFaultMakesOfThem) {
  SweepOptions options = on(16);
  options.overrides = {"baseline.layout={tensor_parallel: 2}", "faults={tensor_across_nodes: true}",
                       "sweep={mended: [tensor_across_nodes]}"};
  run(options);
  const store::Result result = store::read_result(file_);
  ASSERT_EQ(result.cases.size(), 2U);
  EXPECT_EQ(analysis::spans_of_case(result, 0).text(), "tensor 2, data 1");
  EXPECT_EQ(analysis::spans_of_case(result, 1).text(), "tensor 1, data 2");
  const auto limit_of_tensor = [&](std::int32_t case_index) {
    double limit_s = 0;
    for (const store::ResultOperations& row : result.operations)
      limit_s += row.case_index == case_index && row.group == "tensor" ? row.limit_s : 0;
    return limit_s;
  };
  EXPECT_NEAR(limit_of_tensor(0) / limit_of_tensor(1), 450.0 / 50, 0.01);  // NVLink, against one network card per pair
}

TEST_F(PredictedSweep, IsNeitherPooledNorAHistoryNorAGate) {
  run(on(16));
  SweepOptions again = on(16);
  again.output = file_ + ".again.h5";
  run(again);
  SweepOptions third = on(16);
  third.output = file_ + ".third.h5";
  run(third);
  EXPECT_THAT(said({"compare", file_, again.output, third.output}), HasSubstr("nothing to pool"));
  EXPECT_THAT(said({"compare", "--history", file_, again.output}), HasSubstr("a history is of measured runs"));
  EXPECT_THAT(said({"compare", file_, again.output, "--fail-on", "slower"}), HasSubstr("a prediction proves nothing"));
  EXPECT_NE(exit_code_, 0);
  EXPECT_THAT(said({"sweep", "--resume", file_}), HasSubstr("run it again with --force"));
  EXPECT_THAT(test::error_of([&] { run(on(16)); }), HasSubstr("exists: --force replaces it"));
}

// Nothing ran, so no result was checked: nccl-tests' column of errors would claim it.
TEST_F(PredictedSweep, OfACollectiveHasNoErrors) {
  config_ = folder_.write("sizes.yaml",
                          "backend: sim\nhardware: h100-sxm\nworkload: collective\nbaseline: {precision: bf16}\n"
                          "sweep: {message_size: [1 MiB, 1 GiB]}\n");
  EXPECT_THAT(run(on(16)), HasSubstr("busbw GB/s  limit GB/s\n"));
  EXPECT_TRUE(say({"show", file_, "--format", "json"}).json()["cases"][0]["rates"]["errors"].is_null());
}

TEST_F(PredictedSweep, AsksForWhatItNeedsAndRefusesWhatItIsNot) {
  EXPECT_THAT(test::error_of([&] { run(on(0)); }), HasSubstr("--ranks N"));
  SweepOptions wrapped = on(16);
  wrapped.wrap = "nsys profile";
  EXPECT_THAT(test::error_of([&] { run(wrapped); }), HasSubstr("--wrap"));
  SweepOptions gated = on(16);
  gated.require = "healthy";
  EXPECT_THAT(test::error_of([&] { run(gated); }), HasSubstr("--require"));
  SweepOptions crowded = on(16), without_network = on(16);
  crowded.ranks_per_node = 16;
  without_network.overrides = {"hardware=l40s"};
  EXPECT_THAT(test::error_of([&] { run(crowded); }), HasSubstr("give --ranks-per-node 8 or fewer"));
  EXPECT_THAT(test::error_of([&] { run(without_network); }), HasSubstr("add `fabric: {node: 400 GB/s}`"));
  SweepOptions measured = on(16);
  measured.overrides = {"backend=cpu", "hardware=none"};
  EXPECT_THAT(test::error_of([&] { run(measured); }), HasSubstr("mpirun -np N"));
  EXPECT_FALSE(std::filesystem::exists(file_));
}

}  // namespace
}  // namespace harness::cli
