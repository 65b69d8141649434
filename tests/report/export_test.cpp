#include "report/export.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdio>
#include <map>

#include "config/experiment.h"
#include "full_result.h"
#include "golden.h"
#include "support/errors.h"

namespace harness::report {
namespace {

using config::Framework;
using ::testing::HasSubstr;
using ::testing::Not;

// One of every kind: flags, environment, a value of several words, settings without a word, and unproven changes.
store::Result proven_sweep() {
  store::Result result = test::samples::sweep(
      {"precision=bf16", "micro_batch_size=2", "micro_batch_size=4",
       "layout={tensor_parallel: 2, pipeline_parallel: 4}", "overlap_grad_reduce=true", "bucket_size=50 MiB",
       "attention=fused", "cuda_graph=true", "nccl_algo=AllReduce:Tree", "nccl_buffsize=8 MiB", "nccl_collnet=true",
       "env={NCCL_IB_TIMEOUT: 23, TORCH_NOTE: \"it's; fine\"}", "allreduce_algorithm=halving_doubling",
       "nccl_proto=AllReduce:LL128", "global_batch_size=32"},
      {1, 1, 0.6, 0.9, 0.85, 0.95, 0.93, 0.92, 0.91, 0.97, 0.96, 0.94, 0.95, 0.9, 0.9, 1.1, 0.999});
  result.backend = "cuda";
  result.model = *config::model_preset("llama3-8b");
  result.identity = {{"harness", "0.1.0 (git 1a2b3c4)"}};
  return result;
}

std::string exported(const store::Result& result, ExportFormat format, const std::string& name = "") {
  return export_text(find_proven(result, analysis::summarise(result), name, "runs.h5"), format);
}

std::string complaint(const store::Result& result, const std::string& name) {
  return test::error_of([&] { exported(result, std::nullopt, name); });
}

// A setting that is faster at one size and slower at another is exported only on request.
TEST(Export, ASettingThatIsSlowerAtAnotherSizeIsLeftOut) {
  store::Result result = test::operations(
      {"message_size=1 GB", "nccl_algo=AllReduce:Tree", "nccl_algo=AllReduce:Tree at message_size=1 GB",
       "nccl_proto=AllReduce:LL128", "nccl_proto=AllReduce:LL128 at message_size=1 GB"},
      {1, 1, 1e4, 0.8, 1.2e4, 0.9, 0.9e4}, 1.5);
  result.backend = "cuda";
  const std::string text = exported(result, std::nullopt);
  EXPECT_THAT(text, HasSubstr("NCCL_PROTO"));
  EXPECT_THAT(text, Not(HasSubstr("export NCCL_ALGO")));
  EXPECT_THAT(text, HasSubstr("but nccl_algo=AllReduce:Tree at message_size=1 GB is slower"));
  EXPECT_THAT(text, Not(HasSubstr("but AllReduce:LL128 is faster")));
  EXPECT_THAT(exported(result, std::nullopt, "nccl_algo=AllReduce:Tree"), HasSubstr("export NCCL_ALGO"));
}

std::string shell(const std::string& script) {
  std::string quoted;  // by hand, since script_word() is under test
  for (const char c : script) quoted += c == '\'' ? std::string("'\\''") : std::string(1, c);
  std::FILE* pipe = popen(("bash -eu -c '" + quoted + "'").c_str(), "r");
  std::string out;
  for (int c; pipe != nullptr && (c = std::fgetc(pipe)) != EOF;) out += static_cast<char>(c);
  EXPECT_TRUE(pipe != nullptr && pclose(pipe) == 0) << script;
  return out;
}

TEST(Export, Golden) {
  const store::Result result = proven_sweep();
  test::expect_golden("export.env", exported(result, std::nullopt));
  test::expect_golden("export.megatron", exported(result, Framework::megatron));
  test::expect_golden("export.deepspeed.json", exported(result, Framework::deepspeed));
  test::expect_golden("export.torchtitan", exported(result, Framework::torchtitan));
}

// A key may depend on other settings of the case.
TEST(Export, AChangeIsWrittenAsItsCaseNeedsIt) {
  store::Result result = test::samples::sweep({"micro_batch_size=4", "virtual_pipeline=4"}, {1, 1, 0.8, 0.9});
  result.variables.emplace_back("pipeline_schedule");
  result.variables.emplace_back("virtual_pipeline");
  for (store::ResultCase& row : result.cases) {
    row.settings[2] = "{tensor_parallel: 1, pipeline_parallel: 4}";
    row.settings.emplace_back("interleaved");
    row.settings.push_back(row.variable == "virtual_pipeline" ? row.value : "auto");
  }
  EXPECT_THAT(exported(result, Framework::megatron), HasSubstr("\n  --num-virtual-stages-per-pipeline-rank 4\n"));
  EXPECT_THAT(exported(result, Framework::torchtitan),
              HasSubstr("\n  --parallelism.pipeline_parallel_microbatch_size 4\n"));
}

TEST(Export, TheEnvironmentFileIsWhatAShellReads) {
  const store::Result result = proven_sweep();
  std::string script = exported(result, std::nullopt);
  script += "\necho \"$NCCL_ALGO|$NCCL_BUFFSIZE|$NCCL_COLLNET_ENABLE|$NCCL_IB_TIMEOUT|$TORCH_NOTE\"\n";
  EXPECT_EQ(shell(script), "AllReduce:Tree|8388608|1|23|it's; fine\n");
  EXPECT_THAT(script, Not(HasSubstr("NCCL_PROTO=")));  // slower
  script = exported(result, Framework::megatron) + "\nprintf '%s ' \"${MEGATRON_ARGS[@]}\"\n";
  EXPECT_EQ(shell(script),
            "--bf16 --micro-batch-size 4 --tensor-model-parallel-size 2 --pipeline-model-parallel-size 4 "
            "--overlap-grad-reduce --ddp-bucket-size 13107200 --attention-backend fused --cuda-graph-impl "
            "full_iteration --no-check-for-nan-in-loss-and-grad ");
}

TEST(Export, WhatIsNotProvenIsRefused) {
  const store::Result result = proven_sweep(), unreliable = test::samples::unreliable();
  EXPECT_THAT(complaint(result, "nccl_proto=AllReduce:LL128"), HasSubstr("is not proven faster (slower"));
  EXPECT_THAT(complaint(result, "baseline"), HasSubstr("is the baseline"));
  EXPECT_THAT(complaint(result, "precision=bf61"), HasSubstr("did you mean precision=bf16?"));
  EXPECT_THAT(complaint(unreliable, ""), HasSubstr("proves nothing"));
  EXPECT_THAT([&] { exported(unreliable, std::nullopt); },
              ::testing::Throws<Error>(::testing::Property(&Error::exit_code, 4)));
  store::Result crashed = test::samples::sweep({"precision=bf16"}, {1, 1, 0.6});
  crashed.cases[2].status = store::CaseStatus::failed;
  EXPECT_THAT(complaint(crashed, "precision=bf16"), HasSubstr("is not proven faster (failed)"));
  EXPECT_THAT(exported(crashed, Framework::megatron), HasSubstr("precision=bf16: failed"));
  const std::string none = exported(test::samples::nothing_moved(), std::nullopt);
  EXPECT_THAT(none, HasSubstr("Nothing is proven faster"));
  EXPECT_THAT(none, Not(HasSubstr("export ")));
}

TEST(Export, AVariableOfAnotherVersionIsNamedAndTheOthersAreExported) {
  store::Result result = test::samples::sweep({"precision=bf16"}, {1, 1, 0.6});
  result.variables.emplace_back("host_weather");
  for (store::ResultCase& row : result.cases) row.settings.emplace_back("auto");
  const Export settings = planned_case(result, analysis::summarise(result), "precision=bf16", "runs.h5");
  EXPECT_THAT(export_text(settings, Framework::megatron),
              AllOf(HasSubstr("--bf16"), HasSubstr("does not know: host_weather=auto.")));
}

// A cluster on which nothing ran says nothing about a single change.
TEST(Export, ACaseThatFailedWithTheBaselineIsTriedAgain) {
  store::Result result = test::samples::sweep({"micro_batch_size=2"}, {1, 1, 0.9});
  result.config_text = "backend: cpu\nmodel: gpt3-125m\nbaseline: {}\nsweep: {micro_batch_size: [2]}\n";
  const auto next_if_failed = [&](std::int32_t index) {
    result.cases[index].status = store::CaseStatus::failed;
    for (store::ResultBlock& block : result.blocks) {
      if (block.case_index == index) block.status = store::BlockStatus::failed;
    }
    const analysis::Summary summary = analysis::summarise(result);
    return next_configuration(result, summary, find_proven(result, summary, "", "runs.h5"), "runs.h5");
  };
  EXPECT_THAT(next_if_failed(2), HasSubstr("# left out: micro_batch_size=2: failed"));
  EXPECT_THAT(next_if_failed(0), HasSubstr("\n  micro_batch_size: [2]\n"));
}

TEST(Export, NothingOfAHostileFileGetsOut) {
  for (const auto& [variable, value] :
       std::initializer_list<std::pair<std::string, std::string>>{{"env", "{A: \"x\ny\"}"},
                                                                  {"env", "{\"A=$(id)\": x}"},
                                                                  {"env", "{LD_PRELOAD;id: x}"},
                                                                  {"nccl_algo", "Ring; touch pwned"},
                                                                  {"micro_batch_size", "2\n) ; touch pwned ; ("},
                                                                  {"$(touch pwned)", "1"},
                                                                  {"precision", "bf16\"}, \"x\": {\""}}) {
    store::Result result = test::samples::sweep({"micro_batch_size=2"}, {1, 1, 0.8});
    result.cases[2].name = variable + "=" + value;
    result.cases[2].variable = variable;
    result.cases[2].value = value;
    result.name = "x\nexport PWNED=1\n\x1b[2J";
    result.created = "\r$(id)";
    result.identity = {{"harness", "0\nexport PWNED=2"}};
    const std::string file = "run\nexport PWNED=3.h5";
    const Export proven = find_proven(result, analysis::summarise(result), "", file);
    EXPECT_TRUE(proven.settings.empty()) << value;
    for (const ExportFormat format :
         std::initializer_list<ExportFormat>{std::nullopt, Framework::megatron, Framework::deepspeed}) {
      const std::string text = export_text(proven, format);
      EXPECT_THAT(text, Not(HasSubstr("\x1b")));
      if (format == Framework::deepspeed) {
        const auto json = nlohmann::json::parse(text);
        EXPECT_EQ(json.size(), 1u) << text;
        continue;
      }
      std::istringstream lines(text);
      for (std::string line; std::getline(lines, line);) {
        EXPECT_TRUE(line.empty() || line[0] == '#' || line == "MEGATRON_ARGS=(" || line == ")") << line;
      }
    }
  }
}

TEST(Export, WordsOfScriptsStandForTheirText) {
  for (const char* text :
       {"", "plain", "a b", "it's", "$(id)", "`id`", "\\", "a\"b", "*", "~", "#x", "é", "^=mlx5_0:1"}) {
    EXPECT_EQ(shell(std::string("printf %s ") + script_word(text)), text);
  }
  EXPECT_THROW(script_word("a\nb"), Error);
  EXPECT_THROW(script_word(std::string_view("a\0b", 3)), Error);
}

TEST(ShowCost, Golden) {
  const store::Result result = test::samples::sweep({"micro_batch_size=2", "precision=bf16"}, {1, 1, 0.8, 0.7});
  const analysis::Summary summary = analysis::summarise(result);
  const auto estimate = analysis::estimate_cost(result, summary, {2.5, "USD", 300e9});
  ASSERT_TRUE(estimate);
  test::expect_golden("cost.txt", write_text(with_section(cost_section(*estimate))));
  test::expect_golden("cost.md", write_markdown(with_section(cost_section(*estimate))));
  const auto json = nlohmann::json::parse(show(result, summary, Format::json, estimate));
  EXPECT_EQ(json["cost"]["after"].size(), 2u);
  EXPECT_EQ(json["cost"]["after"][0]["name"], "precision=bf16");
  const store::Result moved = test::samples::unreliable();
  const auto nothing = analysis::estimate_cost(moved, analysis::summarise(moved), {2.5, "USD", 300e9});
  EXPECT_THAT(write_text(with_section(cost_section(*nothing))),
              HasSubstr("Nothing is proven faster, so there is nothing to save yet."));
}

using nlohmann::json;

std::string refusal(const store::Result& result, const std::string& name) {
  return test::error_of([&] { trace_json(result, name); });
}

double end_of(const json& event) {
  return event["ts"].get<double>() + event["dur"].get<double>();
}

// One line per event, and one for the rest.
TEST(Trace, Golden) {
  store::Result result = test::samples::with_timeline();
  result.splits[0].loading_s = 0.002;
  json trace = json::parse(trace_json(result, "baseline"));
  std::string lines;
  for (const json& event : trace["traceEvents"]) lines += event.dump() + "\n";
  trace.erase("traceEvents");
  test::expect_golden("trace.txt", lines + trace.dump() + "\n");
}

TEST(Trace, RanksShareAClockAndSlicesOfATrackDoNotOverlap) {
  store::Result result = test::samples::with_timeline();
  const auto add = [&](int rank, const char* stream, const char* kind, double start_s, double end_s) {
    result.timeline.push_back(test::samples::interval(0, rank, kind, stream, "forward", start_s, end_s));
  };
  add(0, "pipeline", "send", 0.0035929, 0.0129890);
  add(0, "pipeline", "receive", 0.0035929, 0.0129917);
  add(0, "world", "all_reduce", 0.0210, 0.0225);
  add(2, "world", "all_reduce", 0.0208, 0.0213);
  const json trace = json::parse(trace_json(result, "baseline"));
  std::map<std::pair<int, std::string>, int> tracks;
  std::map<int, double> closed_us;
  for (const auto& e : trace["traceEvents"]) {
    if (e["name"] == "thread_name") tracks[{e["pid"], e["args"]["name"]}] = e["tid"];
    if (e["args"].value("kind", "") == "all_reduce" && e["tid"] == tracks[{e["pid"], "world"}])
      closed_us[e["pid"]] = end_of(e);
  }
  EXPECT_TRUE(tracks.contains({0, "pipeline send"}));
  EXPECT_TRUE(tracks.contains({0, "pipeline receive"}));
  EXPECT_NEAR(closed_us[0], 22500, 1e-3);
  EXPECT_NEAR(closed_us[2], 22500, 1e-3);
  EXPECT_THAT(trace["otherData"]["clock"].get<std::string>(), HasSubstr("shared"));
}

TEST(Trace, WhatIsNotThereIsNamed) {
  const store::Result result = test::samples::with_timeline();
  EXPECT_THAT(refusal(result, "baseline_again"), HasSubstr("it is the baseline"));
  EXPECT_THAT(refusal(result, "micro_batch_size=3"), HasSubstr("did you mean micro_batch_size=2?"));
  EXPECT_THAT(refusal(test::samples::nothing_moved(), "baseline"),
              HasSubstr("has no timeline: the file holds no profiled step of it"));
}

TEST(Trace, HostileTextsAndTimesStayInside) {
  store::Result result = test::samples::with_timeline();
  result.timeline[0].kind = "\"}]}\x1b[2J\xff";
  result.timeline[1].start_s = NAN;
  result.timeline[2].end_s = -1;
  result.timeline[3].case_index = 99;
  result.rank_table[0].host = "\x1b]0;x\x07";
  const std::string text = trace_json(result, "baseline");
  EXPECT_THAT(text, Not(HasSubstr("\x1b")));
  EXPECT_EQ(std::count_if(text.begin(), text.end(), [](char c) { return c == '\n'; }), 1);
  EXPECT_NO_THROW(json::parse(text).size());
}

}  // namespace
}  // namespace harness::report
