#include "config/registry.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

#include "base/text.h"
#include "config_files.h"
#include "support/errors.h"
#include "support/row_values.h"
#include "support/soak.h"

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

TEST(Registry, ValuesHaveOneSpelling) {
  const std::vector<std::pair<std::string, std::vector<std::string>>> spellings{
      {"sequences",
       {"{distribution: lognormal, median: 512, sigma: 0.8}", "{distribution: uniform, min: 8, max: 9}",
        "{distribution: file, file: data/lengths.txt}"}},
      {"layout", {"{tensor_parallel: 8, pipeline_parallel: 4}"}},
      {"bucket_size", {"1 MiB", "1536 B"}},
      {"memory_cap", {"90 %", "100 %"}},
      {"grad_compression_ratio", {"0.1 %", "100 %"}},
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
  EXPECT_EQ(canonical("rank_order", "tp-cp-ep-dp-pp"), "tp-dp-pp");
  for (const char* wrong : {"tp-dp", "tp-tp-dp", "tp-dp-pp-xp", "cp"}) {
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
    Settings untouched;
    v.parse(untouched, default_of(v));
    EXPECT_EQ(untouched, Settings()) << v.name;
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
  EXPECT_THAT(message_of("cuda_graph", "1"), HasSubstr("allowed: true, false"));
  EXPECT_THAT(message_of("attention_engine", "first"), HasSubstr("allowed: auto, 0 to"));
  for (const char* wrong : {"0 %", "101 %", "nan"}) EXPECT_NE(message_of("grad_compression_ratio", wrong), "") << wrong;
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

// Parses settings as a baseline writes them: "sharding=optimizer".
Settings settings_with(const std::vector<std::pair<std::string, std::string>>& values) {
  Settings s;
  s.ranks = 4;
  for (const auto& [variable, value] : values) find_variable(variable)->parse(s, value);
  return s;
}

// What a variable says of settings; "": nothing.
struct Said {
  const char* variable;
  std::vector<std::pair<std::string, std::string>> settings;
  const char* why;
};

void expect_said(const Said& row, const std::string& said) {
  EXPECT_THAT(said, HasSubstr(row.why)) << row.variable;
  EXPECT_EQ(said.empty(), *row.why == '\0') << row.variable << ": " << said;
}

TEST(Registry, SaysWhenAVariableHasNoEffect) {
  const std::pair<std::string, std::string> one_replica{"layout", "{tensor_parallel: 4}"}, alone{"ranks", "1"},
      optimizer{"sharding", "optimizer"}, parameters{"sharding", "parameters"}, selective{"recompute", "selective"},
      unfused{"attention", "unfused"};
  for (const Said& row : std::vector<Said>{
           {"bucket_size", {}, ""},
           {"bucket_size", {{"overlap_grad_reduce", "false"}}, ""},  // buckets are cut with and without overlap
           {"bucket_size", {one_replica}, "data_parallel is 1"},
           {"bucket_size", {one_replica, {"overlap_optimizer", "true"}}, ""},  // bucket_size also splits the updates
           {"bucket_size", {optimizer}, ""},
           {"bucket_size", {parameters}, "a bucket is a layer"},
           {"overlap_grad_reduce", {one_replica}, "data_parallel is 1"},
           {"allreduce_algorithm", {}, ""},
           {"nccl_algo", {alone}, "only one rank"},
           {"sequence_parallel", {}, "tensor_parallel is 1"},
           {"sequence_parallel", {one_replica}, ""},
           {"recompute_layers", {}, "recompute is not full"},
           {"recompute_layers", {{"recompute", "full"}}, ""},
           {"recompute", {selective}, "fused attention stores no scores"},
           {"recompute", {selective, unfused}, ""},
           {"attention_engine", {}, ""},
           {"attention_engine", {unfused}, "attention is unfused"},
           {"sharding", {}, ""},
           {"sharding", {one_replica}, "data_parallel is 1"},
           {"sharding_group", {}, "sharding is none"},
           {"sharding_group", {optimizer}, ""},
           {"sharding_group", {optimizer, one_replica}, "data_parallel is 1"},
           {"overlap_param_gather", {}, "sharding is none"},
           {"overlap_param_gather", {optimizer}, ""},
           {"overlap_param_gather", {parameters}, "prefetch_layers says how far ahead"},
           {"prefetch_layers", {}, "sharding is not parameters"},
           {"prefetch_layers", {parameters}, ""},
           {"prefetch_layers", {parameters, one_replica}, "data_parallel is 1"},
           {"grad_reduce_precision", {}, ""},
           {"grad_reduce_precision", {one_replica}, "data_parallel is 1"},
           {"grad_compression", {one_replica}, "data_parallel is 1"},
           {"grad_compression_ratio", {}, "grad_compression is none"},
           {"grad_compression_ratio", {{"grad_compression", "topk"}}, ""}}) {
    expect_said(row, find_variable(row.variable)->without_effect(settings_with(row.settings)));
  }
  Settings s = settings_with({optimizer});
  s.layout.replicas_of_node = 4;
  EXPECT_EQ(find_variable("sharding_group")->without_effect(s), "all replicas share a node");
}

TEST(Registry, SaysWhatDoesNotGoTogether) {
  const std::pair<std::string, std::string> compressed{"grad_compression", "topk"}, sharded{"sharding", "optimizer"},
      half{"precision", "fp16"}, overlapped{"overlap_optimizer", "true"}, ahead{"overlap_param_gather", "true"},
      documents{"sequences", "{distribution: lognormal, median: 100, sigma: 1}"},
      context{"layout", "{context_parallel: 2}"};
  for (const Said& row : std::vector<Said>{
           {"grad_compression", {sharded}, ""},
           {"grad_compression", {compressed}, ""},
           {"grad_compression", {compressed, sharded}, "needs sharding none, not optimizer"},
           {"grad_compression",
            {compressed, {"grad_reduce_precision", "bf16"}},
            "needs grad_reduce_precision fp32, not bf16"},
           {"grad_compression", {half}, ""},
           {"grad_compression", {compressed, half}, "does not go with precision fp16"},
           {"attention", {context}, ""},
           {"attention", {context, {"attention", "unfused"}}, "unfused and context_parallel 2 do not go together"},
           {"overlap_optimizer", {half}, ""},
           {"overlap_optimizer", {half, overlapped}, "does not go with precision fp16"},
           {"overlap_param_gather", {ahead}, "overlap_param_gather needs weights that replicas gather"},
           {"overlap_param_gather", {ahead, sharded}, ""},
           {"sequences", {documents}, ""},
           {"sequences", {documents, context}, "context_parallel 2 do not go together"}}) {
    expect_said(row, find_variable(row.variable)->conflict(settings_with(row.settings)));
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
  EXPECT_EQ(caution(4, 0.5), "");  // no compression
  s.grad_compression = GradCompression::top_k;
  EXPECT_EQ(caution(4, 0.24), "");
  EXPECT_THAT(caution(4, 0.25), HasSubstr("only with a grad_compression_ratio below 25 %"));
  EXPECT_THAT(caution(128, 0.01), HasSubstr("128 replicas"));
  s.layout[program::Axis::tensor] = s.layout[program::Axis::pipeline] = 2;
  EXPECT_THAT(caution(8, 0.5), HasSubstr("2 replicas"));
  EXPECT_EQ(caution(4, 1), "");  // one replica
  s.layout[program::Axis::context] = 2;
  EXPECT_THAT(caution(16, 0.3), HasSubstr("4 replicas"));  // context-parallel ranks count as replicas
}

TEST(Registry, AWordMayBeRefusedByABackend) {
  struct Row {
    Precision precision;
    const char* workload;
    BackendKind backend;
    const char* why;
  };
  using enum BackendKind;
  for (const auto& [precision, workload, backend, why] :
       std::vector<Row>{{Precision::tf32, "gpt", cpu, "on cpu: fp32, bf16, fp16"},
                        {Precision::tf32, "gpt", cuda, ""},
                        {Precision::bf16, "gpt", cpu, ""},
                        {Precision::nvfp4, "gpt", cpu, "backend cpu has no nvfp4"},
                        {Precision::nvfp4, "gpt", cuda, "backend sim predicts nvfp4"},
                        {Precision::nvfp4, "gpt", sim, ""},
                        {Precision::fp8, "gpt", cpu, ""},
                        {Precision::mxfp8, "gpt", cuda, ""},
                        {Precision::fp8, "gemm", cuda, "workload gemm has no fp8"},
                        {Precision::mxfp8, "gemm", cuda, "workload gemm has no mxfp8"},
                        {Precision::fp16, "gemm", cpu, ""},
                        {Precision::fp16, "collective", cuda, "bf16 has as many bytes"}}) {
    Settings s;
    s.precision = precision;
    s.workload = workload;
    const std::string said = find_variable("precision")->refused_by(s, backend);
    EXPECT_THAT(said, HasSubstr(why));
    EXPECT_EQ(said.empty(), *why == '\0') << said;
  }
  Settings s;
  s.precision = Precision::mxfp8;
  Hardware hopper;
  hopper.name = "H100";
  hopper.compute_capability = 90;
  EXPECT_THAT(
      find_variable("precision")->lacking(s, hopper),
      HasSubstr("precision mxfp8 needs tensor cores of compute capability 10.0 (Blackwell) or later; the GPU is "
                "H100"));
}

// ---- Whatever value a row takes: what it prints is that value again. Workers, results and `--set` rely on it.

TEST(RoundTrip, EveryPrintedValueIsReadAsItself) {
  std::mt19937_64 random(1);
  constexpr int enough_to_hit = 1000;  // finds some values of rows that refuse most texts
  const int texts = test::times(enough_to_hit, 20, 100000);
  for (const Variable& row : registry()) {
    std::set<std::string> seen;
    for (int i = 0; i < texts; ++i) {
      const std::string text = test::random_text(row, random);
      Settings given;
      try {
        row.parse(given, text);
      } catch (const Error&) {
        continue;
      }
      const std::string printed = row.print(given);
      Settings again;
      ASSERT_NO_THROW(row.parse(again, printed)) << row.name << ": " << text << " is printed as " << printed;
      EXPECT_EQ(again, given) << row.name << ": " << text << " is printed as " << printed;
      seen.insert(printed);
    }
    if (texts < enough_to_hit) continue;
    EXPECT_GE(seen.size(), 2u) << row.name << ": hardly any random text is a value of it";
  }
}

// A printed value determines the setting completely, whatever the baseline has. `env` and `mended` add to it.
TEST(RoundTrip, APrintedValueReplacesAnyOther) {
  std::mt19937_64 random(2);
  for (const Variable& row : registry()) {
    if (row.free_parts || row.name == "mended") continue;
    for (int i = 0; i < test::draws(100, 10000); ++i) {
      Settings one, other;
      test::set_at_random(row, one, random);
      test::set_at_random(row, other, random);
      row.parse(other, row.print(one));
      EXPECT_EQ(row.print(other), row.print(one)) << row.name;
    }
  }
}

TEST(RoundTrip, AttentionKeepsItsKeyHeads) {
  const Variable& row = *find_variable("attention_shape");
  Settings s;
  row.parse(s, "{heads: 32, kv_heads: 8}");
  EXPECT_EQ(s.attention_shape.group, 4);
  row.parse(s, "{heads: 64}");  // changes only what it names
  EXPECT_EQ(s.attention_shape.kv_heads(), 8);
  EXPECT_THAT(test::error_of([&] { row.parse(s, "{heads: 12}"); }), HasSubstr("kv_heads (here 8) must divide heads"));
  EXPECT_EQ(s.attention_shape.heads, 64);
  Settings whole;
  row.parse(whole, "{heads: 12}");
  EXPECT_EQ(whole.attention_shape.kv_heads(), 12);
}

// 12 heads do not go with the baseline's 8 kv_heads, nor its 32 heads with 3 of them.
TEST(Registry, PartsThatGoTogetherMayReplaceOnesThatDid) {
  const auto swept = [](const std::string& shape) {
    return "backend: cpu\nworkload: attention\nbaseline: {attention_shape: {heads: 32, kv_heads: 8}}\n"
           "sweep: {attention_shape: [" +
           shape + "]}\n";
  };
  const Experiment e = test::loaded(swept("{heads: 12, kv_heads: 3}"));
  ASSERT_EQ(e.changes.size(), 1u);
  EXPECT_EQ(e.changes[0].value, "{batch: 1, heads: 12, kv_heads: 3, head_dim: 128, sequence: 2048}");
  EXPECT_THAT(test::complaint_about(swept("{heads: 12}")), HasSubstr("kv_heads (here 8) must divide heads (here 12)"));
  EXPECT_THAT(test::complaint_about(swept("{heads: 12, kv_heads: 5}")), HasSubstr("must divide heads"));
  EXPECT_THAT(test::complaint_about(swept("{heads: 12, kv_heads: 3, head: 1}")), HasSubstr("unknown key"));
}

}  // namespace
}  // namespace harness::config
