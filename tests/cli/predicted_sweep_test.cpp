#include <filesystem>

#include "analysis/cases.h"
#include "analysis/summary.h"
#include "cli/plan.h"
#include "plan/plan.h"
#include "said.h"
#include "workloads/workload.h"

namespace harness::cli {
namespace {

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
  Said run(const std::vector<std::string>& overrides = {}) const {
    return simulate(prediction(config_, file_, 16, overrides));
  }
  // Writes a calibration that was compared with enough steps to resolve small changes. Returns its override.
  std::string well_known(const std::string& message_bytes = "1 to 1000000000000") const {
    std::string text = test::text_of(shipped("calibration/harness.yaml"));
    text +=
        "changes: {error: 1 %, error_90: 2 %}\n"
        "errors: [{id: a, gpu: h100-sxm, group: a, lab: own, error: 1 %}]\n"
        "calibrated: {gpus: [h100-sxm], ranks: 1 to 4096, hidden: 1 to 65536, sequence: 1 to 65536, "
        "message_bytes: " +
        message_bytes + "}\n";
    return "calibration=" + folder_.write("known.yaml", text);
  }

  test::TemporaryFolder folder_;
  std::string config_ = folder_.write("small.yaml", small_cluster);
  std::string file_ = std::filesystem::path(config_).replace_extension("h5").string();
};

TEST_F(PredictedSweep, StandsBesidePublishedSteps) {
  simulate(prediction(config_, file_, 8, {"hardware=a100-sxm-80gb"}));
  const std::string published = "published for a100-sxm-80gb in bf16: ", yours = "; yours, predicted: ";
  const auto planned = [&](const std::string& hardware, const std::string& backend) {
    return unwrapped(
        say({"plan", config_, "--ranks", "8", "--set", "hardware=" + hardware, "--set", "backend=" + backend}).all());
  };
  for (const auto& screen :
       Commands{{"show", file_}, {"show", "-v", file_}, {"report", file_, "--format", "md", "-o", "-"}}) {
    EXPECT_THAT(unwrapped(say(screen).out), AllOf(HasSubstr("Baseline: " + published), HasSubstr(yours)));
  }
  EXPECT_THAT(planned("a100-sxm-80gb", "sim"), AllOf(HasSubstr(published), HasSubstr(yours)));
  EXPECT_THAT(planned("a100-sxm-80gb", "cuda"), AllOf(HasSubstr(published), Not(HasSubstr("yours"))));
  EXPECT_THAT(planned("l40s", "sim"), Not(HasSubstr("published for")));
  EXPECT_THAT(say({"show", test::source_dir() + "/results/example.h5"}).all(), Not(HasSubstr("published for")));
}

// Plan and result agree, also on which changes are too close to call, and both respect measure.smallest_effect.
TEST_F(PredictedSweep, TheFileHoldsWhatThePlanPredicts) {
  std::vector<int> close;
  for (const std::string smallest : {"1 %", "90 %"}) {
    const std::vector<std::string> overrides{well_known(), "measure.smallest_effect=" + smallest};
    const Said said = run(overrides);
    EXPECT_THAT(said.out,
                AllOf(HasSubstr("Predicted, not measured. "), HasSubstr("predicted, not measured. Expected error: ")));
    EXPECT_EQ(said.code, 0);
    const store::Result result = store::read_result(file_);
    const analysis::Summary summary = analysis::summarise(result);
    EXPECT_EQ(result.state, store::RunState::complete);
    EXPECT_EQ(result.nodes, 2);
    const config::Experiment experiment = config::load_experiment(config_, overrides);
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
  const auto expected_error = [&](const std::string& calibration) {
    run({calibration});
    return value_of(store::read_result(file_).identity, "expected_error");
  };
  EXPECT_THAT(expected_error(well_known()), HasSubstr("tier A"));
  EXPECT_THAT(expected_error(well_known("1 to 4")), HasSubstr("tier E"));
}

TEST_F(PredictedSweep, ItsTimelineIsAWholeStepOfEveryRole) {
  run();
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
  run();
  for (const auto& reader : Commands{{"show", file_},
                                     {"show", "--breakdown", file_},
                                     {"report", "--format", "md", "-o", "-", file_},
                                     {"report", "-o", "-", file_},
                                     {"export", "--format", "megatron", file_},
                                     {"compare", file_, file_, "--anyway"}}) {
    SCOPED_TRACE(reader[0]);
    EXPECT_THAT(say(reader).all(), AllOf(HasSubstr("redicted, not measured"), Not(HasSubstr("proven change:")),
                                         Not(HasSubstr("Whiskers"))));
  }
  EXPECT_THAT(say({"report", "-o", "-", file_}).out,
              AllOf(HasSubstr("part of the predicted step"), Not(HasSubstr("measured MFU"))));
  const auto json = say({"show", "--format", "json", file_}).json();
  for (const auto& row : json["cases"]) {
    const std::string verdict = row["judgement"];
    EXPECT_THAT(verdict, ::testing::AnyOf("predicted", "too close to call", "(baseline)"));
  }
}

TEST_F(PredictedSweep, WhatItIsWorthIsPredictedToo) {
  const Said said = run({"combine=[{precision: bf16, micro_batch_size: 4}]", "baseline.precision=fp32",
                         "sweep={overlap_grad_reduce: [false]}", "measure={}"});
  ASSERT_EQ(said.code, 0) << said.err;
  const std::string shown = say({"show", file_, "--cost", "2", "--run-tokens", "300e9"}).out;
  EXPECT_THAT(shown, AllOf(HasSubstr("Predicted, not measured: the tokens/s"), HasSubstr(" recovered"),
                           Not(HasSubstr("the measured tokens/s")), Not(HasSubstr("proven")),
                           Not(HasSubstr("nothing to save"))));
}

// With a calibration measured on CPU cores the step is one of CPU cores, and every reader refers to ranks.
TEST_F(PredictedSweep, OfCpuCoresHasNoNumbersOfGpus) {
  std::string cores = test::text_of(shipped("calibration/harness.yaml"));
  cores += "backend: cpu\n";
  const std::string calibration = folder_.write("cores-calibration.yaml", cores);
  const Said said = run({"calibration=" + calibration, "cost={per_gpu_hour: 2, run: {tokens: 300e9}}",
                         "baseline.allreduce_algorithm=ring"});
  ASSERT_EQ(said.code, 0) << said.err;
  const store::Result result = store::read_result(file_);
  EXPECT_EQ(result.backend, "sim");
  EXPECT_EQ(result.stands_for, "cpu");
  for (const auto& reader : Commands{{"show", "--breakdown", file_},
                                     {"report", "--format", "md", "-o", "-", file_},
                                     {"compare", file_, file_, "--anyway"}}) {
    SCOPED_TRACE(reader[0]);
    std::string text = say(reader).all();
    text = text.substr(0, text.find("name: small"));  // the embedded configuration may contain anything
    EXPECT_THAT(text, Not(HasSubstr("/GPU")));
  }
  EXPECT_THAT(say({"show", file_}).out, AllOf(HasSubstr("/rank"), HasSubstr("nothing here is about a GPU")));
  const auto json = say({"show", "--format", "json", file_}).json();
  EXPECT_EQ(json["stands_for"], "cpu");
  EXPECT_EQ(json["cost"]["priced"], "rank");
  EXPECT_TRUE(json["cases"][0]["tflops_per_gpu"].is_null());
}

// Readers show the comparison from the file that a sweep wrote, and JSON has the diagnosis.
TEST_F(PredictedSweep, WhatIsWrongIsNamed) {
  config_ = folder_.write("faulty.yaml", std::string(small_cluster) + "faults: {slow_gpu: {rank: 11, speed: 50 %}}\n");
  run();
  const std::string cause = "rank 11 (simulated-1) computes at 50 % of its clock (slow_gpu)";
  for (const auto& reader : Commands{{"show", "--breakdown", "--format", "md", file_},
                                     {"report", "--format", "md", "-o", "-", file_},
                                     {"report", "-o", "-", file_}}) {
    EXPECT_THAT(say(reader).out, HasSubstr("redicted with its faults against predicted without"));
  }
  const auto prediction = say({"show", "--breakdown", "--format", "json", file_}).json()["prediction"];
  EXPECT_THAT(prediction["diagnosis"]["text"].get<std::string>(), HasSubstr(cause));
  EXPECT_EQ(prediction["diagnosis"]["causes"][0]["fault"], "slow_gpu");
  EXPECT_EQ(prediction["cases"].size(), 6U);
}

// One job with its ranks dealt to the nodes one by one, and node by node: the file's node data follow.
TEST_F(PredictedSweep, SaysOfNodesWhatAFaultMakesOfThem) {
  run({"baseline.layout={tensor_parallel: 2}", "faults={tensor_across_nodes: true}",
       "sweep={mended: [tensor_across_nodes]}"});
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
  std::vector<std::string> files;
  for (const char* name : {"first.h5", "again.h5", "third.h5"}) {
    simulate(prediction(config_, files.emplace_back(folder_ / name), 16));
  }
  EXPECT_THAT(say({"compare"}, files).all(), HasSubstr("nothing to pool"));
  EXPECT_THAT(say({"compare", "--history", files[0], files[1]}).all(), HasSubstr("a history is of measured runs"));
  const Said gate = say({"compare", files[0], files[1], "--fail-on", "slower"});
  EXPECT_NE(gate.code, 0);
  EXPECT_THAT(gate.all(), HasSubstr("a prediction proves nothing"));
  EXPECT_THAT(say({"sweep", "--resume", files[0]}).all(), HasSubstr("run it again with --force"));
  SweepOptions unforced = prediction(config_, files[0], 16);
  unforced.force = false;
  EXPECT_THAT(simulate(unforced).all(), HasSubstr("exists: --force replaces it"));
}

// Nothing ran, so no result was checked: nccl-tests' column of errors would claim it.
TEST_F(PredictedSweep, OfACollectiveHasNoErrors) {
  config_ = folder_.write("sizes.yaml",
                          "backend: sim\nhardware: h100-sxm\nworkload: collective\nbaseline: {precision: bf16}\n"
                          "sweep: {message_size: [1 MiB, 1 GiB]}\n");
  EXPECT_THAT(run().out, HasSubstr("busbw GB/s  limit GB/s\n"));
  EXPECT_TRUE(say({"show", file_, "--format", "json"}).json()["cases"][0]["rates"]["errors"].is_null());
}

TEST_F(PredictedSweep, AsksForWhatItNeedsAndRefusesWhatItIsNot) {
  EXPECT_THAT(simulate(prediction(config_, file_, 0)).err, HasSubstr("--ranks N"));
  EXPECT_THAT(simulate(prediction(config_, "-", 16)).err, HasSubstr("cannot go to standard output"));
  SweepOptions wrapped = prediction(config_, file_, 16), gated = wrapped, crowded = wrapped;
  wrapped.wrap = "nsys profile";
  EXPECT_THAT(simulate(wrapped).err, HasSubstr("--wrap"));
  gated.require = "healthy";
  EXPECT_THAT(simulate(gated).err, HasSubstr("--require"));
  crowded.ranks_per_node = 16;
  EXPECT_THAT(simulate(crowded).err, HasSubstr("give --ranks-per-node 8 or fewer"));
  EXPECT_THAT(run({"hardware=l40s"}).err, HasSubstr("add `fabric: {node: 400 GB/s}`"));
  EXPECT_THAT(run({"backend=cpu", "hardware=none"}).err, HasSubstr("mpirun -np N"));
  EXPECT_FALSE(std::filesystem::exists(file_));
  SweepOptions over = prediction(config_, config_, 16);
  over.force = true;
  EXPECT_THAT(simulate(over).err, HasSubstr("small.yaml exists and is no result file"));
  EXPECT_EQ(test::text_of(config_), small_cluster);
}

}  // namespace
}  // namespace harness::cli
