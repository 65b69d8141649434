#include "config/registry.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

#include "base/error.h"
#include "support/errors.h"
#include "support/row_values.h"

namespace harness::config {
namespace {

using ::testing::HasSubstr;

std::string message_of(const std::string& variable, const std::string& text) {
  Settings settings;
  return test::error_of([&] { find_variable(variable)->parse(settings, text); });
}

std::string canonical(const std::string& variable, const std::string& text) {
  Settings settings;
  find_variable(variable)->parse(settings, text);
  return find_variable(variable)->print(settings);
}

// A value that is read is kept, so that it differs from the default. Values at random are in round_trip_test.
TEST(Registry, EveryVariableKeepsItsValues) {
  for (const Variable& v : registry()) {
    const std::vector<std::string> values = test::values_of(v);
    EXPECT_EQ(values.empty(), v.free_parts) << v.name << ": none of the usual values is read";
    for (const std::string& text : values) EXPECT_EQ(canonical(v.name, text), text) << v.name;
    Settings untouched;
    v.parse(untouched, default_of(v));
    EXPECT_EQ(untouched, Settings()) << v.name;
  }
}

TEST(Registry, ValuesHaveOneSpelling) {
  const std::vector<std::pair<std::string, std::vector<std::string>>> spellings{
      {"sequences",
       {"{distribution: lognormal, median: 512, sigma: 0.8}", "{distribution: uniform, min: 8, max: 9}",
        "{distribution: file, file: data/lengths.txt}"}},
      {"layout", {"{tensor_parallel: 8, pipeline_parallel: 4}"}},
      {"bucket_size", {"1 MiB", "1536 B"}},
      {"memory_cap", {"90 %", "100 %"}},
      {"nccl_algo", {"Ring", "AllReduce:Tree,Ring;AllGather:Ring", "^NVLS,PAT"}},
      {"nccl_proto", {"LL,Simple", "Simple;AllReduce:LL128"}},
      {"nccl_buffsize", {"4 MiB", "64 KiB"}},
      {"nccl_min_ctas", {"1", "64"}},
      {"mended", {"slow_gpu", "socket_fallback, acs_on"}},
      {"message_size", {"1 B", "1 MiB"}},
      {"gemm", {"{m: 1, n: 2, k: 3, transpose: none}", "{m: 4096, n: 512, k: 64, transpose: both}"}},
      {"attention_shape", {"{batch: 4, heads: 16, kv_heads: 4, head_dim: 128, sequence: 4096}"}},
      {"repetitions", {"1", "1000"}},
      {"env", {"{}", "{A: 1}", "{A: \"x, {y}: \\\"z\\\" \\\\\", NCCL_IB_TIMEOUT: 22, PATHS: /a:/b}"}}};
  for (const auto& [name, texts] : spellings) {
    for (const std::string& text : texts) EXPECT_EQ(canonical(name, text), text) << name;
  }
}

TEST(Registry, ARankOrderNamesTheAxesFastestFirst) {
  EXPECT_EQ(canonical("rank_order", "tp-cp-dp-pp"), "tp-dp-pp");
  EXPECT_EQ(canonical("rank_order", "CP-PP-TP-DP"), "pp-tp-dp");
  for (const char* wrong : {"tp-dp", "tp-tp-dp", "tp-dp-pp-ep", "tp-dp-pp-", "dp", "cp"}) {
    EXPECT_THAT(message_of("rank_order", wrong), HasSubstr("dp-tp-pp")) << wrong;
  }
  Settings settings;
  find_variable("rank_order")->parse(settings, "pp-dp-tp");
  find_variable("layout")->parse(settings, "{tensor_parallel: 2}");
  EXPECT_EQ(find_variable("rank_order")->print(settings), "pp-dp-tp");
  using program::Axis;
  EXPECT_EQ(settings.layout.order[0], Axis::pipeline);
}

TEST(Registry, EveryRowIsComplete) {
  std::set<std::string> names;
  for (const Variable& v : registry()) {
    EXPECT_TRUE(names.insert(v.name).second) << v.name << " twice";
    EXPECT_FALSE(v.allowed.empty()) << v.name;
    EXPECT_FALSE(v.help.empty()) << v.name;
    EXPECT_FALSE(v.backends.empty()) << v.name;
    EXPECT_EQ(find_variable(v.name), &v);
    EXPECT_EQ(v.environment_name.empty(), !v.name.starts_with("nccl_")) << v.name;
  }
  EXPECT_EQ(find_variable("micro_batch"), nullptr);
}

TEST(Registry, ChoicesAndExamplesAreValues) {
  for (const Variable& v : registry()) {
    for (const std::string& word : v.choices.words) EXPECT_EQ(canonical(v.name, word), word) << v.name;
    EXPECT_FALSE(example_values(v).empty()) << v.name;
    for (const std::string& example : v.examples) EXPECT_NE(canonical(v.name, example), default_of(v)) << v.name;
    if (v.choices.all) {
      EXPECT_EQ(v.allowed, join(v.choices.words, ", ")) << v.name;
    }
  }
}

TEST(Registry, APartialLayoutChangesOnlyWhatItNames) {
  Settings s;
  s.layout = {{program::Axis::tensor, 4}, {program::Axis::pipeline, 3}};
  find_variable("layout")->parse(s, "{pipeline_parallel: 2}");
  EXPECT_EQ(s.layout, (program::Layout{{program::Axis::tensor, 4}, {program::Axis::pipeline, 2}}));
}

TEST(Registry, AWrongValueLeavesTheSettingsAlone) {
  for (const Variable& v : registry()) {
    Settings s;
    EXPECT_THROW(v.parse(s, "no such value"), Error) << v.name;
    EXPECT_THROW(v.parse(s, ""), Error) << v.name;
    EXPECT_EQ(s, Settings()) << v.name;
    EXPECT_THROW(v.parse(s, "-1"), Error) << v.name;
    EXPECT_EQ(s, Settings()) << v.name;
  }
  Settings s;
  EXPECT_THROW(find_variable("layout")->parse(s, "{tensor_parallel: 2, pipeline_parallel: x}"), Error);
  EXPECT_EQ(s, Settings());
}

TEST(Registry, MessagesNameTheNearestValue) {
  EXPECT_THAT(message_of("precision", "bf61"),
              HasSubstr("allowed: fp32, bf16, tf32, fp16, fp8, mxfp8, nvfp4; did you mean bf16?"));
  EXPECT_THAT(message_of("allreduce_algorithm", "rin"), HasSubstr("did you mean ring?"));
  EXPECT_THAT(message_of("layout", "{tensor_paralel: 2}"), HasSubstr("did you mean tensor_parallel?"));
  EXPECT_THAT(message_of("layout", "2"), HasSubstr("expected a map such as"));
  EXPECT_THAT(message_of("layout", "{}"), HasSubstr("which is empty"));
  EXPECT_THAT(message_of("ranks", "0"), HasSubstr("allowed: 1 to"));
  EXPECT_THAT(message_of("ranks", "half"), HasSubstr("allowed: all, 1 to"));
  EXPECT_THAT(message_of("bucket_size", "16"), HasSubstr("1 KiB or more"));
  EXPECT_THAT(message_of("micro_batch_size", "4294967296"), HasSubstr("allowed: 1 to"));
}

TEST(Registry, NcclValuesTakeOneSpelling) {
  EXPECT_EQ(canonical("nccl_algo", "ring"), "Ring");
  EXPECT_EQ(canonical("nccl_algo", "collnetdirect"), "CollNetDirect");
  EXPECT_EQ(canonical("nccl_algo", "ring, tree, ring"), "Tree,Ring");
  EXPECT_EQ(canonical("nccl_algo", "allreduce:tree,ring;allgather:ring"), "AllReduce:Tree,Ring;AllGather:Ring");
  EXPECT_EQ(canonical("nccl_algo", "ring;allreduce:^pat"), "Ring;AllReduce:^PAT");
  EXPECT_EQ(canonical("nccl_proto", "SIMPLE"), "Simple");
}

TEST(Registry, NcclValuesThatNcclWouldMisreadAreRefused) {
  for (const char* bad : {"", "Ring;Tree", "allreduce:ring;allreduce:tree", "ring,", "ring;", ":ring",
                          "allreduce:", "alreduce:ring", "ring^", "^", "Simple", "allreduce:ring:tree", "4"}) {
    EXPECT_NE(message_of("nccl_algo", bad), "") << bad;
  }
  EXPECT_THAT(message_of("nccl_proto", "LL182"), HasSubstr("did you mean LL128?"));
  EXPECT_THAT(message_of("nccl_algo", "alreduce:ring"), HasSubstr("did you mean AllReduce?"));
}

TEST(Registry, SaysWhenAVariableHasNoEffect) {
  Settings s;
  s.ranks = 4;
  EXPECT_EQ(find_variable("bucket_size")->without_effect(s), "");
  s.overlap_grad_reduce = false;
  EXPECT_EQ(find_variable("bucket_size")->without_effect(s), "");  // buckets are cut with and without overlap
  s.layout[program::Axis::tensor] = 4;
  EXPECT_NE(find_variable("bucket_size")->without_effect(s), "");
  s.overlap_optimizer = true;
  EXPECT_EQ(find_variable("bucket_size")->without_effect(s), "");  // updates are cut by it, too
  EXPECT_NE(find_variable("overlap_grad_reduce")->without_effect(s), "");
  EXPECT_EQ(find_variable("allreduce_algorithm")->without_effect(s), "");
  s.ranks = 1;
  EXPECT_NE(find_variable("nccl_algo")->without_effect(s), "");
}

TEST(Registry, WhatAStepKeepsHasAnEffectOnlyWhereThereIsSomethingToDivideOrToComputeAgain) {
  Settings s;
  EXPECT_THAT(find_variable("sequence_parallel")->without_effect(s), HasSubstr("tensor_parallel is 1"));
  s.layout[program::Axis::tensor] = 2;
  EXPECT_EQ(find_variable("sequence_parallel")->without_effect(s), "");
  EXPECT_THAT(find_variable("recompute_layers")->without_effect(s), HasSubstr("recompute is not full"));
  s.recompute = Recompute::selective;
  EXPECT_THAT(find_variable("recompute")->without_effect(s), HasSubstr("fused attention stores no scores"));
  s.attention = AttentionKind::unfused;
  EXPECT_EQ(find_variable("recompute")->without_effect(s), "");
  s.recompute = Recompute::full;
  EXPECT_EQ(find_variable("recompute_layers")->without_effect(s), "");
}

TEST(Registry, WhatReplicasExchangeHasAnEffectOnlyWhereThereAreSomeAndTheyDivideIt) {
  Settings s;
  s.ranks = 4;
  const auto why_none = [&](const char* name) { return find_variable(name)->without_effect(s); };
  EXPECT_EQ(why_none("sharding"), "");
  EXPECT_EQ(why_none("grad_reduce_precision"), "");
  EXPECT_THAT(why_none("overlap_param_gather"), HasSubstr("sharding is none"));
  EXPECT_THAT(why_none("sharding_group"), HasSubstr("sharding is none"));
  EXPECT_THAT(why_none("prefetch_layers"), HasSubstr("sharding is not parameters"));
  s.sharding = Sharding::optimizer;
  EXPECT_EQ(why_none("overlap_param_gather"), "");
  EXPECT_EQ(why_none("bucket_size"), "");
  EXPECT_EQ(why_none("sharding_group"), "");
  s.layout.replicas_of_node = 2;
  EXPECT_EQ(why_none("sharding_group"), "");
  s.layout.replicas_of_node = 4;
  EXPECT_EQ(why_none("sharding_group"), "all replicas share a node");
  s.sharding = Sharding::parameters;
  EXPECT_EQ(why_none("prefetch_layers"), "");
  EXPECT_THAT(why_none("overlap_param_gather"), HasSubstr("prefetch_layers says how far ahead"));
  EXPECT_THAT(why_none("bucket_size"), HasSubstr("a bucket is a layer"));
  s.layout[program::Axis::tensor] = 4;
  for (const char* name :
       {"sharding", "sharding_group", "prefetch_layers", "grad_reduce_precision", "bucket_size", "grad_compression"}) {
    EXPECT_THAT(why_none(name), HasSubstr("data_parallel is 1")) << name;
  }
}

TEST(Registry, CompressedGradientsGoWithFewOtherLevers) {
  const Variable &compression = *find_variable("grad_compression"), &ratio = *find_variable("grad_compression_ratio");
  Settings s;
  s.ranks = 4;
  EXPECT_THAT(ratio.without_effect(s), HasSubstr("grad_compression is none"));
  s.sharding = Sharding::optimizer;
  EXPECT_EQ(compression.conflict(s), "");
  compression.parse(s, "topk");
  EXPECT_EQ(ratio.without_effect(s), "");
  EXPECT_THAT(compression.conflict(s), HasSubstr("needs sharding none, not optimizer"));
  s.sharding = Sharding::none;
  EXPECT_EQ(compression.conflict(s), "");
  s.grad_reduce_type = program::DType::bf16;
  EXPECT_THAT(compression.conflict(s), HasSubstr("needs grad_reduce_precision fp32, not bf16"));
  EXPECT_EQ(canonical("grad_compression_ratio", "0.001"), "0.1 %");
  EXPECT_EQ(canonical("grad_compression_ratio", "1"), "100 %");
  for (const char* wrong : {"0 %", "101 %", "nan"}) {
    EXPECT_NE(message_of("grad_compression_ratio", wrong), "") << wrong;
  }
}

TEST(Registry, CompressedGradientsThatSaveNothingAreCautionedAgainst) {
  const Variable& compression = *find_variable("grad_compression");
  Settings s;
  const auto caution = [&](int ranks, double ratio) {
    s.ranks = ranks;
    s.grad_compression_ratio = ratio;
    return compression.caution(s);
  };
  EXPECT_EQ(caution(4, 0.5), "");  // none
  s.grad_compression = GradCompression::top_k;
  EXPECT_EQ(caution(4, 0.24), "");
  EXPECT_THAT(caution(4, 0.25), HasSubstr("only with a grad_compression_ratio below 25 %"));
  EXPECT_THAT(caution(128, 0.01), HasSubstr("128 replicas"));
  s.layout[program::Axis::tensor] = s.layout[program::Axis::pipeline] = 2;
  EXPECT_THAT(caution(8, 0.5), HasSubstr("2 replicas"));
  EXPECT_EQ(caution(4, 1), "");  // one replica
  s.layout[program::Axis::context] = 2;
  EXPECT_THAT(caution(16, 0.3), HasSubstr("4 replicas"));  // those that share a sequence, too
}

TEST(Registry, OnlyOneOfItsWordsIsRefusedByABackend) {
  const Variable& precision = *find_variable("precision");
  Settings s;
  s.precision = Precision::tf32;
  EXPECT_THAT(precision.refused_by(s, BackendKind::cpu), HasSubstr("on cpu: fp32, bf16, fp16"));
  EXPECT_EQ(precision.refused_by(s, BackendKind::cuda), "");
  s.precision = Precision::bf16;
  EXPECT_EQ(precision.refused_by(s, BackendKind::cpu), "");
  s.precision = Precision::nvfp4;  // no backend computes in it, but it can be predicted
  EXPECT_THAT(precision.refused_by(s, BackendKind::cpu), HasSubstr("backend cpu has no nvfp4"));
  EXPECT_THAT(precision.refused_by(s, BackendKind::cuda), HasSubstr("backend sim predicts nvfp4"));
  EXPECT_EQ(precision.refused_by(s, BackendKind::sim), "");
  for (const auto& [of_products, name] : {std::pair{Precision::fp8, "fp8"}, {Precision::mxfp8, "mxfp8"}}) {
    s = {};
    s.precision = of_products;
    EXPECT_EQ(precision.refused_by(s, BackendKind::cpu), "");
    EXPECT_EQ(precision.refused_by(s, BackendKind::cuda), "");
    s.workload = "gemm";
    EXPECT_THAT(precision.refused_by(s, BackendKind::cuda), HasSubstr(std::string("workload gemm has no ") + name));
  }
  Hardware hopper;
  hopper.name = "H100";
  hopper.compute_capability = 90;
  EXPECT_THAT(precision.lacking(s, hopper), HasSubstr("precision mxfp8 needs tensor cores of compute capability 10.0 "
                                                      "(Blackwell) or later; the GPU is H100"));
}

TEST(Registry, Fp16ComputesEverythingButCollectives) {
  Settings s;
  s.precision = Precision::fp16;
  for (const BackendKind backend : {BackendKind::cpu, BackendKind::cuda}) {
    s.workload = "gemm";
    EXPECT_EQ(find_variable("precision")->refused_by(s, backend), "");
    s.workload = "collective";
    EXPECT_THAT(find_variable("precision")->refused_by(s, backend), HasSubstr("bf16 has as many bytes"));
  }
  EXPECT_EQ(find_variable("overlap_optimizer")->conflict(s), "");
  s.overlap_optimizer = true;
  EXPECT_THAT(find_variable("overlap_optimizer")->conflict(s), HasSubstr("does not go with precision fp16"));
}

TEST(Registry, WhatRunsAStepOnAGpuIsForGpus) {
  for (const char* name : {"attention_engine", "cuda_graph"}) {
    EXPECT_EQ(find_variable(name)->backends, std::vector<BackendKind>{BackendKind::cuda}) << name;
  }
  EXPECT_EQ(canonical("cuda_graph", "off"), "false");
  EXPECT_THAT(message_of("cuda_graph", "1"), HasSubstr("allowed: true, false"));
  EXPECT_THAT(message_of("attention_engine", "first"), HasSubstr("allowed: auto, 0 to"));
  EXPECT_THAT(message_of("attention", "flash"), HasSubstr("allowed: fused, unfused"));
  Settings s;
  EXPECT_EQ(find_variable("attention_engine")->without_effect(s), "");
  s.attention = AttentionKind::unfused;
  EXPECT_NE(find_variable("attention_engine")->without_effect(s), "");
}

TEST(Registry, Backends) {
  for (const BackendKind kind : {BackendKind::cpu, BackendKind::cuda}) {
    EXPECT_EQ(parse_backend(name_of(kind)), kind);
  }
  EXPECT_THROW(parse_backend("gpu"), Error);
}

}  // namespace
}  // namespace harness::config
