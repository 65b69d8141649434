#include "config/frameworks/framework.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "base/text.h"
#include "config/registry.h"
#include "config_files.h"
#include "support/errors.h"

namespace harness::config {
namespace {

using ::testing::HasSubstr;

TEST(Frameworks, EveryWrittenRowIsOfSomethingThatExists) {
  for (const Framework framework : frameworks) {
    for (const FrameworkRow& row : rows_of(framework)) {
      const std::string name = row.here.substr(0, row.here.find_first_of(".:,"));
      EXPECT_TRUE(find_variable(name) != nullptr || name == "model" || name == "measure") << row.key << row.here;
      EXPECT_TRUE(row.print_model == nullptr || name == "model") << row.key;
    }
  }
}

TEST(Frameworks, ScalesOfBlocksAreARecipe) {
  Settings s;
  s.precision = Precision::mxfp8;
  EXPECT_EQ(words_in(Framework::megatron, "precision", s).flags,
            (NameValues{{"--bf16", ""}, {"--fp8-format", "e4m3"}, {"--fp8-recipe", "mxfp8"}}));
  EXPECT_EQ(words_in(Framework::deepspeed, "precision", s).flags, (NameValues{{"bf16.enabled", "true"}}));
  EXPECT_THAT(words_in(Framework::deepspeed, "precision", s).note, HasSubstr("MXFP8BlockScaling()"));
  EXPECT_THAT(words_in(Framework::torchtitan, "precision", s).note, HasSubstr("mxfp8_cublas"));
}

// What Megatron-LM asserts beside a flag is written with it.
TEST(Frameworks, WhatAFlagNeedsStandsBesideIt) {
  Settings s;
  const auto flags = [&](const char* variable) { return words_in(Framework::megatron, variable, s).flags; };
  EXPECT_EQ(flags("cuda_graph"),
            (NameValues{{"--cuda-graph-impl", "full_iteration"}, {"--no-check-for-nan-in-loss-and-grad", ""}}));
  s.cuda_graph = false;
  EXPECT_EQ(flags("cuda_graph"), (NameValues{{"--cuda-graph-impl", "none"}}));
  s.sharding = Sharding::optimizer;
  EXPECT_EQ(flags("sharding"), (NameValues{{"--use-distributed-optimizer", ""}}));
  s.sharding = Sharding::parameters;
  EXPECT_EQ(flags("sharding"), (NameValues{{"--use-distributed-optimizer", ""},
                                           {"--use-megatron-fsdp", ""},
                                           {"--ckpt-format", "fsdp_dtensor"},
                                           {"--data-parallel-sharding-strategy", "optim_grads_params"}}));
  s.recompute = Recompute::selective;
  EXPECT_EQ(flags("recompute"), (NameValues{{"--recompute-granularity", "selective"}}));
  s.recompute = Recompute::full;
  EXPECT_EQ(flags("recompute"), (NameValues{{"--recompute-granularity", "full"},
                                            {"--recompute-method", "uniform"},
                                            {"--recompute-num-layers", "1"}}));
}

// torchtitan shards everything among all data-parallel ranks by default.
TEST(Frameworks, WhereNothingIsShardedTorchtitanIsToldSo) {
  const FrameworkWords words = words_in(Framework::torchtitan, "sharding", {});
  EXPECT_EQ(words.flags, (NameValues{{"parallelism.data_parallel_shard_degree", "1"}}));
  EXPECT_THAT(words.note, HasSubstr("parallelism.data_parallel_replicate_degree"));
}

// The flags that `harness variables` names for these variables.
TEST(Frameworks, FlagsThatTheHelpNamesAreWritten) {
  Settings s;
  s.tp_overlap = s.embedding_as_layer = true;
  for (const char* name : {"tp_overlap", "embedding_as_layer"}) {
    const FrameworkWords words = words_in(Framework::megatron, name, s);
    ASSERT_TRUE(words.known()) << name;
    EXPECT_THAT(find_variable(name)->help, HasSubstr("Megatron-LM: " + words.flags.front().first));
  }
  EXPECT_EQ(words_in(Framework::megatron, "embedding_as_layer", s).flags.size(), 2u);
}

// A setting does not know the model, whose activation may be either.
TEST(Frameworks, EachActivationIsUnfused) {
  Settings s;
  s.fusion = false;
  const NameValues flags = words_in(Framework::megatron, "fusion", s).flags;
  for (const char* flag : {"--no-bias-gelu-fusion", "--no-bias-swiglu-fusion"})
    EXPECT_THAT(flags, ::testing::Contains(NameValues::value_type(flag, "")));
}

TEST(Frameworks, RanksThatShareASequenceAreWritten) {
  Settings s;
  const auto words = [&](Framework framework) { return words_in(framework, "layout", s); };
  EXPECT_EQ(words(Framework::megatron).flags.size(), 2u);
  find_variable("layout")->parse(s, "{tensor_parallel: 2, pipeline_parallel: 1, context_parallel: 4}");
  EXPECT_EQ(words(Framework::megatron).flags.back(), NameValues::value_type("--context-parallel-size", "4"));
  EXPECT_EQ(words(Framework::torchtitan).flags.back(),
            NameValues::value_type("parallelism.context_parallel_degree", "4"));
  EXPECT_EQ(words(Framework::deepspeed).flags.back(), NameValues::value_type("sequence_parallel_size", "4"));
}

TEST(Frameworks, AValueWithoutAnEquivalentIsNamed) {
  const auto rows = rows_of(Framework::deepspeed);
  const auto stage = std::ranges::find(rows, "zero_optimization.stage", &FrameworkRow::key);
  ASSERT_NE(stage, rows.end());
  EXPECT_EQ(parse_theirs(*stage, "2"), "gradients");
  EXPECT_EQ(test::error_of([&] { parse_theirs(*stage, "4"); }),
            "zero_optimization.stage '4' has no equivalent; known: 0, 1, 2, 3");
}

// The note says so if omitting the key gives the value; any other value has no equivalent.
TEST(Frameworks, WhereNothingIsWrittenTheKeyIsOmitted) {
  struct Left {
    Framework framework;
    const char *variable, *value, *note;
  };
  for (const auto& [framework, variable, value, note] : std::vector<Left>{
           {Framework::megatron, "overlap_grad_reduce", "false", "omit --overlap-grad-reduce"},
           {Framework::megatron, "sharding", "none",
            "omit --use-distributed-optimizer, --use-megatron-fsdp, --data-parallel-sharding-strategy"},
           {Framework::megatron, "rank_order", "tp-dp-pp", "omit --use-tp-pp-dp-mapping"},
           {Framework::megatron, "rank_order", "dp-tp-pp", ""},
           {Framework::megatron, "pipeline_schedule", "gpipe", ""},
           {Framework::megatron, "precision", "nvfp4", ""},
           {Framework::deepspeed, "precision", "nvfp4", ""},
           {Framework::torchtitan, "fusion", "false", "omit compile.enable"},
           {Framework::deepspeed, "gradient_accumulation", "auto", "omit gradient_accumulation_steps"},
           {Framework::torchtitan, "grad_reduce_precision", "bf16", "torchtitan reduces in float32 alone"},
           {Framework::torchtitan, "threads", "2", ""}}) {
    Settings s;
    find_variable(variable)->parse(s, value);
    const FrameworkWords words = words_in(framework, variable, s);
    EXPECT_FALSE(words.known()) << variable << value;
    EXPECT_EQ(words.note, note) << variable << value;
  }
}

TEST(Frameworks, AScheduleIsANumberOfVirtualStages) {
  Settings s;
  s.layout = {{program::Axis::pipeline, 4}};
  s.pipeline_schedule = PipelineSchedule::interleaved;
  const auto flags = [&](const char* variable) { return words_in(Framework::megatron, variable, s).flags; };
  EXPECT_EQ(flags("pipeline_schedule"), (NameValues{{"--num-virtual-stages-per-pipeline-rank", "2"}}));
  s.virtual_pipeline = 3;
  EXPECT_EQ(flags("virtual_pipeline"), (NameValues{{"--num-virtual-stages-per-pipeline-rank", "3"}}));
  EXPECT_EQ(known_elsewhere_as("--num-virtual-stages-per-pipeline-rank").hint, "here it is virtual_pipeline");
}

// ---- A hint points right or there is none: for what people type who come from other programs.

using ::testing::AllOf;
using ::testing::Not;

std::string complaint_about(const std::string& baseline, const std::string& rest = "") {
  return test::complaint_about("backend: cuda\nmodel: llama3-8b\nbaseline: {" + baseline + "}\n" + rest);
}

TEST(Hints, WhatIsNotSupportedIsSaidSo) {
  for (const char* key : {"num_experts: 8", "moe_router_topk: 2", "expert_parallel: 4", "expert_model_parallel_size: 2",
                          "layout: {expert_parallel: 4}"}) {
    EXPECT_THAT(complaint_about(key), AllOf(HasSubstr("experts are not supported"), Not(HasSubstr("did you mean"))))
        << key;
  }
}

// The message names the backend that predicts the setting.
TEST(Hints, WhatIsPredictedOnlyIsRefusedByABackendThatMeasures) {
  for (const auto& [setting, why] : std::vector<std::pair<std::string, std::string>>{
           {"precision: nvfp4",
            "backend cuda has no nvfp4, which needs Transformer Engine's kernels; backend sim predicts"},
           {"layout: {context_parallel: 2}", "backend cuda has no context_parallel, whose ranks share a sequence"},
           {"tp_overlap: true", "backend cuda does not honour it; backends that do: sim"}}) {
    EXPECT_THAT(complaint_about(setting), HasSubstr(why)) << setting;
    EXPECT_EQ(test::complaint_about("backend: sim\nmodel: llama3-8b\nbaseline: {" + setting + "}\n"), "");
  }
}

TEST(Hints, KeysOfOthersAreTranslated) {
  const std::vector<std::pair<std::string, std::string>> known{
      {"local_batch_size: 2", "here it is micro_batch_size"},
      {"seq_len: 8192", "here it is model.sequence"},
      {"sequence_length: 8192", "here it is model.sequence"},
      {"data_parallel: 2", "it follows: ranks / "},
      {"data_parallel_shard_degree: -1", "it follows from the ranks"},
      {"data_parallel_replicate_degree: 1", "it follows: ranks / "},
      {"layout: {data_parallel: 2}", "it follows: ranks / "},
      {"tensor_parallel: 8", "part of layout: layout: {tensor_parallel: 2}"},
      {"tensor_parallel_degree: 8", "here it is layout.tensor_parallel"},
      {"context_parallel: 2", "part of layout: layout: {context_parallel: 2}"},
      {"cp: 2", "here it is layout.context_parallel"},
      {"context_parallel_size: 2", "here it is layout.context_parallel"},
      {"fp8_recipe: mxfp8", "here it is precision"},
      {"pipeline_parallel_degree: 8", "here it is layout.pipeline_parallel"},
      {"activation_checkpoint: selective", "here it is recompute"},
      {"compile: true", "here it is fusion"},
      {"NCCL_BUFFSIZE: 4 MiB", "here it is nccl_buffsize"},
      {"nccl_ib_hca: mlx5_0", "env: {NCCL_IB_HCA: VALUE}"}};
  for (const auto& [key, answer] : known) EXPECT_THAT(complaint_about(key), HasSubstr(answer)) << key;
}

TEST(Hints, AKeyInTheWrongPlaceIsNoForeignOne) {
  EXPECT_THAT(complaint_about("", "micro_batch_size: 2\n"), HasSubstr("did you mean baseline.micro_batch_size?"));
  EXPECT_THAT(complaint_about("", "precision: bf16\n"), HasSubstr("did you mean baseline.precision?"));
  EXPECT_THAT(complaint_about("", "backends: cuda\n"), HasSubstr("did you mean backend?"));
}

// Existing names are never taken for typos of each other, and every single slip in a name leads back to it.
TEST(Hints, EverySlipOfEveryVariableLeadsBack) {
  const std::vector<std::string> names = variable_names();
  for (const std::string& name : names) {
    for (std::size_t at = 1; at + 1 < name.size(); ++at) {
      if (name[at] == '_' || name[at - 1] == '_' || name[at + 1] == '_') continue;
      std::string swapped = name, shorter = name;
      std::swap(swapped[at], swapped[at + 1]);
      shorter.erase(at, 1);
      for (const std::string& slip : {swapped, shorter}) {
        if (std::ranges::find(names, slip) != names.end()) continue;
        EXPECT_EQ(nearest(slip, names), name) << slip;
      }
    }
  }
  for (const std::string& name : names) {
    std::vector<std::string> others = names;
    std::erase(others, name);
    for (const char* kept : {"tensor_parallel", "context_parallel", "data_parallel"})
      EXPECT_EQ(nearest(kept, others), "");
  }
}

}  // namespace
}  // namespace harness::config
