#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <map>

#include "report/document.h"
#include "said.h"

namespace harness::cli {
namespace {

const std::string cluster = shipped("16node.yaml");

Said predicted(const std::vector<std::string>& more) {
  return say({"plan", cluster, "--backend", "sim", "--ranks", "128"}, more);
}

TEST(Predicted, EveryCaseThatChangesTheStepHasAPredictedTime) {
  const Said plan = predicted({"--set", "sweep.nccl_buffsize=[8 MiB]"});
  ASSERT_EQ(plan.code, 0) << plan.err;
  EXPECT_THAT(plan.out,
              AllOf(HasSubstr("predicted, not measured: harness on CUDA"), HasSubstr("128 ranks on 16 nodes"),
                    HasSubstr("?: the prediction does not know nccl_buffsize"), HasSubstr("too close to call"),
                    HasSubstr("expected error: "), HasSubstr("\n! uncalibrated: calibration harness")));
  EXPECT_THAT(plan.out, AllOf(Not(HasSubstr("blocks in")), Not(HasSubstr("time:"))));  // no measurement is planned
}

// The question of whoever plans with sim comes first: the step, its MFU, and what would be faster.
TEST(Predicted, TheAnswerStandsOnTheFirstLineAndItsTableAboveTheMemory) {
  const std::string text = predicted({"--only", "overlap_grad_reduce"}).out;
  EXPECT_THAT(text, ::testing::ContainsRegex("^Predicted, not measured: a step of the baseline takes [0-9.]+ m?s at an "
                                             "MFU of [0-9.]+ %"));
  EXPECT_LT(text.find("predicted step"), text.find("memory/rank"));
  const auto of_job = [](const std::string& sweep) {
    return say({"plan", shipped("job.yaml"), "--backend", "sim", "--ranks", "128", "--set", sweep}).out;
  };
  const auto words = [&](const std::string& sweep) {
    const std::string out = of_job(sweep);
    return unwrapped(out.substr(0, out.find("\n\n")));
  };
  EXPECT_THAT(words("sweep={layout: [{tensor_parallel: 2}, {tensor_parallel: 4}]}"),
              AllOf(HasSubstr("; TP2 is fastest, with "), HasSubstr(" at an MFU of ")));
  EXPECT_THAT(words("sweep={overlap_grad_reduce: [false]}"), Not(HasSubstr("fastest")));
  EXPECT_THAT(of_job("sweep={bucket_size: [26 MiB]}"), HasSubstr("  0.0 %, too close to call"));
}

TEST(Predicted, ProgramsReadTheSameInJson) {
  const Said plan =
      predicted({"--format", "json", "--set", "calibration=megatron-2022", "--set", "sweep.nccl_buffsize=[8 MiB]"});
  ASSERT_EQ(plan.code, 0) << plan.err;
  const auto json = plan.json();
  EXPECT_EQ(json["schema"], "harness-plan");
  EXPECT_EQ(json["calibration"]["file"], "megatron-2022");
  const std::map<std::string, double> longer_than{
      {"overlap_grad_reduce=false", 1}, {"layout={tensor_parallel: 16, pipeline_parallel: 1}", 3}, {"ranks=8", 8}};
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
                std::abs(std::log(change)) < std::log1p(row["expected_change_error_90"].get<double>()));
    }
    const auto least = longer_than.find(name);
    EXPECT_GT(change, least == longer_than.end() ? 0 : least->second);
    if (name.starts_with("nccl_algo=")) {
      EXPECT_GE(change, 1);  // NCCL's default is the best by its own model
    }
  }
}

// On a narrow terminal no line is longer, except commands to paste.
TEST(Predicted, FitsEightyColumns) {
  setenv("COLUMNS", "80", 1);
  std::string text = predicted({"--only", "layout"}).out +
                     predicted({"--only", "micro_batch_size", "--best", "3"}).out +
                     say({"plan", cluster, "--ranks", "128", "--assume-mfu", "40%", "--only", "layout"}).out;
  const test::TemporaryFolder folder;
  const std::string collectives =
      folder.write("c.yaml",
                   "backend: sim\nworkload: collective\nhardware: dgx-h100\nbaseline: {precision: bf16}\n"
                   "sweep: {message_size: [1 GB], nccl_algo: [AllReduce:Ring]}\n");
  text += say({"plan", collectives, "--ranks", "16"}).out;
  unsetenv("COLUMNS");
  EXPECT_THAT(text, AllOf(HasSubstr("critical path"), HasSubstr("not told apart"), HasSubstr("Slurm")));
  for (const std::string& line : split_text(text, "\n")) {
    if (!line.starts_with("  --set ")) {
      EXPECT_LE(report::columns_of(line), 80u) << line;
    }
  }
  EXPECT_THAT(predicted({"--only", "layout", "--format", "md"}).out,
              HasSubstr("| case | predicted step | change | MFU | computing | exposed | idle |\n"));
}

// A single operation is planned as it is measured: with its time and bandwidth, not as a step of twenty repetitions.
TEST(Predicted, OfOneOperationIsItsTimeAndItsBandwidth) {
  const test::TemporaryFolder folder;
  const std::string file = folder.write(
      "c.yaml",
      "backend: cuda\nworkload: collective\nhardware: dgx-h100\nbaseline: {collective: all_reduce, message_size: 64 "
      "MiB, "
      "precision: fp32, in_place: false}\nsweep: {message_size: [1 KiB, 1 GiB], nccl_algo: [AllReduce:Ring]}\n");
  const std::vector<std::string> plan{"plan", file, "--backend", "sim", "--ranks", "16"};
  const Said said = say(plan);
  ASSERT_EQ(said.code, 0) << said.err;
  EXPECT_THAT(said.out, AllOf(HasSubstr("time us  algbw GB/s  busbw GB/s"), Not(HasSubstr("predicted step")),
                              Not(HasSubstr("MFU")), Not(HasSubstr("exposed"))));
  const auto json = say(plan, {"--format", "json"}).json();
  std::istringstream lines(said.out.substr(0, said.out.find("memory/rank")));
  std::size_t found = 0;
  for (std::string line; std::getline(lines, line);) {
    for (const auto& row : json["cases"]) {
      const std::string name = row["name"];
      if (!line.starts_with(name + "  ")) continue;
      ++found;
      std::istringstream cells(line.substr(name.size()));
      double us = 0, algbw = 0, busbw = 0;
      cells >> us >> algbw >> busbw;
      EXPECT_NEAR(us, 1e6 * row["predicted_step_seconds"].get<double>() / 20, 1e-3 * us) << line;
      EXPECT_NEAR(busbw, algbw * 2 * 15 / 16, 2e-3 * busbw) << line;
      EXPECT_EQ(line.find('%') == std::string::npos, !name.starts_with("nccl_algo")) << line;  // a size is not a change
      EXPECT_EQ(row.contains("predicted_change"), name.starts_with("nccl_algo")) << name;
    }
  }
  EXPECT_EQ(found, json["cases"].size());
}

// A data sheet needs the peak of a precision only if products are computed in it.
TEST(Predicted, OnlyProductsNeedThePeakOfTheirPrecision) {
  const test::TemporaryFolder folder;
  const auto plan = [&](const std::string& what, const std::string& hardware) {
    return say({"plan", folder.write("c.yaml", fmt::format("backend: cuda\nhardware: {}\n{}\n", hardware, what)),
                "--backend", "sim", "--ranks", "4"});
  };
  for (const char* collective : {"all_reduce", "all_gather", "reduce_scatter", "all_to_all", "send_recv"}) {
    const Said said = plan(fmt::format("workload: collective\nbaseline: {{collective: {}, message_size: 64 MiB, "
                                       "precision: fp32}}",
                                       collective),
                           "gb300");
    EXPECT_EQ(said.code, 0) << collective << ": " << said.err;
  }
  const Said said = plan("workload: gemm\nbaseline: {gemm: {m: 512, n: 512, k: 512}, precision: fp32}", "gb300");
  EXPECT_EQ(said.code, 1);
  EXPECT_THAT(said.err, AllOf(HasSubstr("c.yaml: the hardware file GB300 states no peak_flops of fp32, which this "),
                              HasSubstr("name a hardware file that does")));
}

// Published runs, which fitted in memory. A plan that needs more can be requested as a hypothesis.
TEST(Predicted, RunsThatExistFit) {
  const test::TemporaryFolder folder;
  const std::string common =
      "precision: bf16, overlap_grad_reduce: true, sharding: optimizer, overlap_param_gather: "
      "true, grad_reduce_precision: bf16, ";
  const auto job = [&](const std::string& model, const std::string& rest) {
    return "backend: cuda\nhardware: dgx-h100\nmodel: " + model + "\nbaseline: {" + common + rest + "}\n";
  };
  const std::string nemotron_15b =
      "{layers: 32, hidden: 6144, heads: 48, kv_heads: 8, ffn: 24576, vocab: 256000, sequence: 4096, positions: "
      "rotary, tied_embeddings: false, biases: false}";
  const std::string of_16 =
      folder.write("of_16.yaml", job(nemotron_15b,
                                     "global_batch_size: 64, micro_batch_size: 2, sequence_parallel: true, layout: "
                                     "{tensor_parallel: 2, pipeline_parallel: 1}"));
  const std::string of_32 = folder.write(
      "of_32.yaml", job("{preset: llama3-70b, sequence: 4096}",
                        "global_batch_size: 32, micro_batch_size: 1, sequence_parallel: true, pipeline_schedule: "
                        "interleaved, virtual_pipeline: 5, layout: {tensor_parallel: 4, pipeline_parallel: 4}"));
  EXPECT_THAT(say({"plan", of_32, "--backend", "sim", "--ranks", "32"}).out,
              AllOf(HasSubstr("expected error"), Not(HasSubstr("hypothetical"))));
  // This job ran, although its planned memory exceeds the GPU's.
  const std::vector<std::string> plan{"plan", of_16, "--backend", "sim", "--ranks", "16"};
  EXPECT_THAT(say(plan).err, HasSubstr("more than 79.1 GiB (hardware file DGX H100); to predict it "
                                       "nevertheless: memory_cap: 105 %"));
  const Said said = say(plan, {"--set", "baseline.memory_cap=105 %"});
  EXPECT_EQ(said.code, 0) << said.err;
  EXPECT_THAT(said.out, AllOf(HasSubstr("hypothetical: it needs "), HasSubstr("expected error")));
  const Said measured = say({"plan", of_32, "--ranks", "32", "--set", "baseline.memory_cap=300 %"});
  EXPECT_EQ(measured.code, 1);
  EXPECT_THAT(measured.err, HasSubstr("only a prediction (backend: sim) may assume more memory"));
}

double baseline_seconds(std::vector<std::string> changes) {
  std::vector<std::string> more{"--format", "json", "--only", "baseline"};
  for (const std::string& change : changes) more.insert(more.end(), {"--set", change});
  const Said plan = predicted(more);
  EXPECT_EQ(plan.code, 0) << plan.err;
  return plan.json()["cases"][0]["predicted_step_seconds"];
}

TEST(Predicted, SettingsCostWhatTheyShould) {
  EXPECT_GT(baseline_seconds({"fusion=false"}), 1.02 * baseline_seconds({}));
  // fp16 computes at the rate of bf16; the gradient check and the all-reduce of its result are added.
  const double fp16 = baseline_seconds({"precision=fp16"}), bf16 = baseline_seconds({"precision=bf16"});
  EXPECT_GT(fp16, bf16);
  EXPECT_NEAR(fp16 / bf16, 1, 2e-2);
  // Megatron-LM of 2022 always reduces gradients in half precision: the setting saves nothing more.
  const std::string theirs = "calibration=megatron-2022", late = "overlap_grad_reduce=false";
  EXPECT_GE(baseline_seconds({theirs, late, "grad_reduce_precision=bf16"}), baseline_seconds({theirs, late}));
  EXPECT_LT(baseline_seconds({late, "grad_reduce_precision=bf16"}), 0.98 * baseline_seconds({late}));
}

TEST(Predicted, WhatIsNotKnownOfTheMachineIsAskedFor) {
  const auto error = [](const std::string& change) { return predicted({"--only", "baseline", "--set", change}).err; };
  EXPECT_THAT(error("hardware=none"), HasSubstr("a prediction needs the hardware"));
  EXPECT_THAT(error("hardware=mi300x"), AllOf(HasSubstr("found 'mi300x'"), HasSubstr("docs/architecture.md")));
  EXPECT_THAT(error("hardware=l40s"), HasSubstr("fabric: {node: 400 GB/s}"));
  EXPECT_THAT(error("calibration=megatron-2020"),
              AllOf(HasSubstr("calibration: found 'megatron-2020'"), HasSubstr("megatron-2022")));
}

// As `calibrate` writes it on one node.
TEST(Predicted, ACalibrationOfOneNodeSaysNothingOfSeveral) {
  const test::TemporaryFolder folder;
  std::string text = test::text_of(shipped("calibration/harness.yaml"));
  const std::size_t network = text.find("network: {");
  ASSERT_NE(network, std::string::npos);
  text.replace(network, text.find('\n', network) - network, "within_node: {share: 80 %, start: 10 us, message: 10 us}");
  const std::string mine = "calibration=" + folder.write("mine.yaml", text);
  EXPECT_THAT(predicted({"--only", "baseline", "--set", mine}).err,
              AllOf(HasSubstr("mine.yaml was measured on one: it has no `network`"), HasSubstr("`calibrate`")));
  const Said one_node = say({"plan", cluster, "--backend", "sim", "--ranks", "8", "--only", "baseline", "--set", mine});
  EXPECT_EQ(one_node.code, 0) << one_node.err;
}

TEST(Predicted, ACalibrationThatIsWrongNamesItsPlace) {
  const test::TemporaryFolder folder;
  const std::string mine = folder.write("mine.yaml",
                                        "name: mine\nsource: measured\nproducts: {share: 120 %, ramp: 128, on: 5}\n"
                                        "software: {operations: {matmull: {host: 2}}}\n");
  EXPECT_THAT(predicted({"--set", "calibration=" + mine}).err,
              AllOf(HasSubstr("mine.yaml:3:"), HasSubstr("up to 100 %"), HasSubstr("matmul"), HasSubstr("memory"),
                    HasSubstr("products.on: found '5'; expected a map")));
}

TEST(Predicted, WhatACalibrationWasComparedWithIsReadWithItsPlaces) {
  const test::TemporaryFolder folder;
  const std::string theirs = test::text_of(shipped("calibration/megatron-2022.yaml"));
  const std::size_t renewed = theirs.find("# Written by `make accuracy`");
  ASSERT_NE(renewed, std::string::npos);
  const auto error = [&](const std::string& end) {
    const std::string mine = folder.write("mine.yaml", theirs.substr(0, renewed) + end);
    return predicted({"--only", "baseline", "--set", "calibration=" + mine}).err;
  };
  EXPECT_EQ(error(theirs.substr(renewed)), "");
  EXPECT_EQ(error(""), "");  // no comparison at all
  EXPECT_THAT(error("calibrated: {gpus: h100, ranks: 8, hidden: 4 to 2, sequence: 1 to 2, message_bytes: 1 to 2}\n"),
              AllOf(HasSubstr("calibrated.gpus: found 'h100'; expected a list"),
                    HasSubstr("found '8'; expected a range such as 2 to 512"), HasSubstr("calibrated.hidden: ")));
  EXPECT_THAT(error("changes: {error: 120 %}\n"),
              AllOf(HasSubstr("changes.error: found '120 %'"), HasSubstr("changes.error_90: missing")));
  EXPECT_THAT(error("errors: [{id: a, gpu: h100-sxm, group: g, lab: l, error: much}, {id: b}]\n"),
              AllOf(HasSubstr("errors[0].error: found 'much'"), HasSubstr("errors[1].gpu: missing")));
}

// One command writes both the table and the calibration.
TEST(Predicted, TheErrorOfAChangeIsThatOfTheTable) {
  const std::string table = test::text_of(test::source_dir() + "/docs/accuracy.md");
  const auto json =
      predicted({"--format", "json", "--only", "micro_batch_size=2", "--set", "calibration=megatron-2022"}).json();
  const auto& row = json["cases"].back();
  std::istringstream line(table.substr(table.find("| megatron-2022 | all |", table.find("## Changes of one setting"))));
  std::string cell;
  for (int i = 0; i < 5; ++i) std::getline(line, cell, '|');  // "", calibration, set, number, median
  EXPECT_NEAR(row["expected_change_error"].get<double>(), std::stod(cell) / 100, 1e-9);
}

}  // namespace
}  // namespace harness::cli
