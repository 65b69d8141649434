#include <gmock/gmock.h>

#include <random>

#include "base/text.h"
#include "config/experiment.h"
#include "config/frameworks/framework.h"
#include "config/registry.h"
#include "evidence/answer.h"
#include "support/temporary_folder.h"

namespace harness::test {
namespace {

using config::Framework;

constexpr int data_parallel = 2;

// Settings that a framework's program could have; each variable has a value of its row, drawn.
config::Settings random_settings(std::mt19937& random) {
  const auto one_of = [&](const std::vector<std::string>& values) {
    return values[std::uniform_int_distribution<std::size_t>(0, values.size() - 1)(random)];
  };
  config::Settings s;
  const auto set = [&](const char* name, const std::vector<std::string>& values) {
    config::find_variable(name)->parse(s, one_of(values));
  };
  set("layout", {"{tensor_parallel: 1, pipeline_parallel: 1}", "{tensor_parallel: 4, pipeline_parallel: 1}",
                 "{tensor_parallel: 2, pipeline_parallel: 4}"});
  set("micro_batch_size", {"1", "2", "4"});
  set("global_batch_size", {"64", "128"});
  set("precision", {"fp32", "bf16"});
  set("recompute", {"none", "full"});
  set("grad_reduce_precision", {"fp32", "bf16"});
  set("bucket_size", {"10 MiB", "100 MiB"});
  set("overlap_grad_reduce", {"true", "false"});
  set("attention", {"fused", "unfused"});
  set("cuda_graph", {"true", "false"});
  set("rank_order", {"tp-dp-pp", "tp-pp-dp"});
  const bool pipeline = s.layout[program::Axis::pipeline] > 1, tensor = s.layout[program::Axis::tensor] > 1;
  if (pipeline) set("pipeline_schedule", {"1f1b", "interleaved"});
  if (tensor) set("sequence_parallel", {"true", "false"});
  // A pipeline that divides more than the optimizer's state is one that harness refuses.
  set("sharding", pipeline ? std::vector<std::string>{"none", "optimizer"}
                           : std::vector<std::string>{"none", "optimizer", "gradients", "parameters"});
  if (s.sharding != config::Sharding::none) set("overlap_param_gather", {"true", "false"});
  return s;
}

// A script with what `export` writes for these settings. A pipeline of torchtitan cuts a batch that follows from the
// number of ranks; a note asks for it.
std::string script_of(Framework framework, const config::Settings& s, std::vector<std::string>& written) {
  const int model_ranks = s.layout[program::Axis::tensor] * s.layout[program::Axis::pipeline];
  std::string script = fmt::format("torchrun --nnodes {} --nproc-per-node {} ", data_parallel, model_ranks);
  const bool megatron = framework == Framework::megatron;
  script += megatron ? "pretrain_gpt.py --num-layers 16 --hidden-size 4096 --num-attention-heads 32 --seq-length 2048 "
                       "--padded-vocab-size 32000"
                     : "-m torchtitan.train --model.name llama3 --model.flavor 8B";
  for (const config::Variable& variable : config::registry()) {
    const config::FrameworkWords words = config::words_in(framework, variable.name, s);
    if (words.known()) written.push_back(variable.name);
    for (const auto& [key, value] : words.flags)
      script += fmt::format(" {}{}{}{}", megatron ? "" : "--", key, value.empty() ? "" : " ", value);
  }
  if (!megatron && s.layout[program::Axis::pipeline] > 1)
    script += fmt::format(" --training.local_batch_size {}", s.global_batch_size / data_parallel);
  return script + "\n";
}

// What is written is read as the same settings, whatever else is set: an exported job is the planned one.
TEST(RoundTrip, WhatExportWritesReadsAsTheSameSettings) {
  const TemporaryFolder scratch;
  std::mt19937 random(1);
  for (const Framework framework : {Framework::megatron, Framework::torchtitan}) {
    for (int i = 0; i < 150; ++i) {
      const config::Settings before = random_settings(random);
      std::vector<std::string> written;
      const std::string script = script_of(framework, before, written);
      const evidence::Answer answer =
          evidence::read_files({scratch.write("go.sh", script)}, {.hardware = "h100-sxm"}).front();
      ASSERT_NE(answer.configuration, "") << script << join(answer.notes, "; ");
      const config::Settings after = config::load_recorded(answer.configuration, "job.yaml", {}).baseline;
      for (const std::string& name : written) {
        if (name == "fusion") continue;  // a note: it is not quite the same thing
        EXPECT_EQ(config::printed(name, after), config::printed(name, before)) << name << "\n"
                                                                               << script << answer.configuration;
      }
    }
  }
}

}  // namespace
}  // namespace harness::test
