#include "config/experiment.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "config_files.h"
#include "support/files.h"

namespace harness::config {
namespace {

using test::complaint;
using test::TemporaryFolder;
using ::testing::HasSubstr;

TEST(Experiment, TheExampleLoads) {
  const Experiment e = test::loaded(test::issue_example());
  EXPECT_EQ(e.name, "laptop");
  EXPECT_EQ(e.backend, BackendKind::cpu);
  EXPECT_EQ(e.model, (Model{"custom", 4, 128, 4, 2048, 128}));
  EXPECT_EQ(e.baseline.precision, Precision::fp32);
  EXPECT_EQ(e.baseline.global_batch_size, 16);
  EXPECT_EQ(e.baseline.bucket_size_bytes, 1 << 20);
  EXPECT_EQ(e.baseline.ranks, 0);
  ASSERT_EQ(e.changes.size(), 6u);
  EXPECT_EQ(e.changes[0].variable, "micro_batch_size");
  EXPECT_EQ(e.changes[1].settings.micro_batch_size, 4);
  EXPECT_EQ(e.changes[2].value, "{tensor_parallel: 2, pipeline_parallel: 1}");
  EXPECT_EQ(e.changes[3].settings.layout, (program::Layout{{program::Axis::tensor, 1}, {program::Axis::pipeline, 2}}));
  EXPECT_FALSE(e.changes[4].settings.overlap_grad_reduce);
  EXPECT_EQ(e.changes[5].settings.allreduce_algorithm, AllReduceAlgorithm::halving_doubling);
  EXPECT_EQ(e.measure.rounds, 12);
  EXPECT_EQ(e.measure.warmup_steps, 2);
  EXPECT_EQ(e.measure.steps, 6);
  EXPECT_EQ(e.measure.seed, 1u);
  EXPECT_EQ(e.measure.smallest_effect, 0.01);
  EXPECT_EQ(e.measure.deadlines.start_s, 60);
  EXPECT_EQ(e.measure.deadlines.step_s, 30);
  EXPECT_EQ(e.measure.time_budget_s, 600);
  EXPECT_EQ(e.output, "results/{name}-{date}.h5");
  EXPECT_EQ(e.text, test::issue_example());
  EXPECT_TRUE(e.warnings.empty());
}

Measure measure_with(const std::vector<std::string>& overrides) {
  return test::loaded(test::issue_example(), overrides).measure;
}

TEST(Experiment, LooksGoByHalvesUpToTheRounds) {
  using Looks = std::vector<int>;
  EXPECT_TRUE(measure_with({}).looks.empty());
  EXPECT_EQ(measure_with({"measure.until=settled"}).looks, (Looks{5, 8, 12}));
  EXPECT_EQ(measure_with({"measure.until=settled", "measure.rounds=40"}).looks, (Looks{5, 8, 12, 18, 27, 40}));
  EXPECT_EQ(measure_with({"measure.until=settled", "measure.rounds=4"}).looks, Looks{4});
  const Experiment e = test::loaded("backend: cpu\nworkload: gemm\nbaseline: {}\nmeasure: {until: settled}\n");
  EXPECT_EQ(e.measure.rounds, 40);
}

TEST(Experiment, StepsMayBeLeftToTheSweep) {
  EXPECT_TRUE(measure_with({"measure.steps=auto"}).auto_steps);
  EXPECT_FALSE(measure_with({"measure.steps=9"}).auto_steps);
}

TEST(Experiment, TheBaselinesValueInAListIsTheBaseline) {
  const Experiment e = test::loaded(
      "backend: cpu\nmodel: gpt3-125m\nbaseline: {micro_batch_size: 2}\nsweep: {micro_batch_size: [1, 2, 4]}\n");
  ASSERT_EQ(e.changes.size(), 2u);
  EXPECT_EQ(e.changes[0].value, "1");
  EXPECT_EQ(e.changes[1].value, "4");
}

TEST(Experiment, ASilentPrecisionOnGpusIsAWarning) {
  const auto warnings = [](const std::string& backend, const std::string& baseline) {
    return test::loaded("backend: " + backend + "\nmodel: gpt3-125m\nbaseline: " + baseline + "\n").warnings;
  };
  EXPECT_THAT(warnings("cuda", "{}"), ::testing::Contains(HasSubstr("it is fp32")));
  EXPECT_THAT(warnings("cuda", "{precision: fp32}"), ::testing::Not(::testing::Contains(HasSubstr("it is fp32"))));
  EXPECT_THAT(warnings("cpu", "{}"), ::testing::Not(::testing::Contains(HasSubstr("it is fp32"))));
}

TEST(Experiment, ACombinationChangesSeveralVariables) {
  const Experiment e = test::loaded(
      "backend: cpu\nmodel: gpt3-125m\nbaseline: {}\nsweep: {micro_batch_size: [2]}\n"
      "combine: [{micro_batch_size: 2, overlap_grad_reduce: false}]\n");
  ASSERT_EQ(e.changes.size(), 2u);
  EXPECT_EQ(case_name(e.changes[0]), "micro_batch_size=2");
  EXPECT_EQ(case_name(e.changes[1]), "micro_batch_size=2 + overlap_grad_reduce=false");
  EXPECT_EQ(e.changes[1].settings.micro_batch_size, 2);
  EXPECT_FALSE(e.changes[1].settings.overlap_grad_reduce);
}

TEST(Experiment, ALadderHasEachFixAloneAndWithThoseBeforeIt) {
  const std::string head = "backend: cpu\nmodel: gpt3-125m\nbaseline: {}\n";
  const Experiment e =
      test::loaded(head +
                   "ladder:\n  - batches: {micro_batch_size: 2}\n  - no overlap: {overlap_grad_reduce: "
                   "false}\n  - buckets: {bucket_size: 4 MiB, micro_batch_size: 4}\n");
  std::vector<std::string> names;
  for (const Change& change : e.changes) names.push_back(case_name(change));
  EXPECT_EQ(names, (std::vector<std::string>{"batches", "no overlap", "batches + no overlap", "buckets",
                                             "batches + no overlap + buckets"}));
  for (const Change& change : e.changes) EXPECT_EQ(change.variable, combination);
  EXPECT_TRUE(e.changes[3].settings.overlap_grad_reduce);
  EXPECT_EQ(e.changes[4].settings.micro_batch_size, 4);
  EXPECT_FALSE(e.changes[4].settings.overlap_grad_reduce);
  const std::vector<std::pair<std::string, std::string>> broken{
      {"ladder: [{a: {micro_batch_size: 2}}]\n", "two fixes or more"},
      {"ladder: [{a: {micro_batch_size: 2}}, {a: {bucket_size: 4 MiB}}]\n", "name them differently"},
      {"ladder: [{a: {micro_batch_size: 2}}, {b: {micro_batch_size: 2}}]\n", "changes nothing on top"},
      {"ladder: [{a=b: {micro_batch_size: 2}}, {b: {bucket_size: 4 MiB}}]\n", "cannot have = + , or ;"},
      {"ladder: [{baseline: {micro_batch_size: 2}}, {b: {bucket_size: 4 MiB}}]\n", "a case that every sweep has"},
      {"ladder: [{a: {micro_batch_size: 1}}, {b: {bucket_size: 4 MiB}}]\n", "this is the baseline's value"},
      {"ladder: [{a: {gradient_accumulation: 2, global_batch_size: 32}}, {b: {bucket_size: 4 MiB}}]\n",
       "gradient_accumulation 2 decides it"},
      {"ladder: {a: {micro_batch_size: 2}}\n", "expected a list of named fixes"}};
  for (const auto& [text, expected] : broken)
    EXPECT_THAT(test::complaint_about(head + text), HasSubstr(expected)) << text;
}

TEST(Experiment, ADeclaredConfidenceIsAShare) {
  EXPECT_EQ(measure_with({}).confidence, 0.95);
  EXPECT_EQ(measure_with({"measure.confidence=99 %"}).confidence, 0.99);
  EXPECT_THROW(measure_with({"measure.confidence=100 %"}), Error);
  EXPECT_THROW(measure_with({"measure.confidence=20 %"}), Error);
}

TEST(Experiment, AllowedKeysAreListedOncePerMap) {
  const std::string message =
      test::complaint_about("backend: cpu\nmodel: gpt3-125m\nbaseline: {tp: 2, pp: 2, dtype: bf16, foo: 1}\n");
  EXPECT_THAT(message, HasSubstr("baseline.dtype: unknown key; here it is precision"));
  EXPECT_EQ(message.find("allowed: precision"), message.rfind("allowed: precision"));
}

TEST(Experiment, EachChangeDiffersFromTheBaselineInItsVariableAlone) {
  const Experiment e = test::loaded(test::issue_example());
  for (const Change& change : e.changes) {
    for (const Variable& v : registry()) {
      const bool same = v.print(change.settings) == v.print(e.baseline);
      EXPECT_EQ(same, v.name != change.variable) << change.variable << "=" << change.value << ": " << v.name;
    }
  }
}

// A whole layout means the same as in the text that names the case.
TEST(Experiment, AWholeLayoutWithoutAContextAxisHasNone) {
  const Experiment e = test::loaded(
      "backend: sim\nhardware: h100-sxm\nmodel: gpt3-125m\nbaseline: {layout: {context_parallel: 2}}\n"
      "sweep: {layout: [{tensor_parallel: 2, pipeline_parallel: 1}, {tensor_parallel: 2}]}\n");
  EXPECT_EQ(e.changes[0].settings.context(), 1);
  EXPECT_EQ(e.changes[1].settings.context(), 2);
}

TEST(Experiment, ByteOrderMarkWindowsLineEndsAndCommentsAreFine) {
  std::string text = "\xef\xbb\xbf# a comment\n";
  for (const char c : test::issue_example()) text += c == '\n' ? std::string("\r\n") : std::string(1, c);
  const Experiment e = test::loaded(text);
  EXPECT_EQ(e.changes.size(), 6u);
  EXPECT_EQ(e.text, text);
}

TEST(Experiment, NamelessTakesTheFilesName) {
  const TemporaryFolder folder;
  const std::string text = "backend: cuda\nmodel: gpt3-125m\nbaseline: {}\n";
  const Experiment e = load_experiment(folder.write("monday.yaml", text));
  EXPECT_EQ(e.name, "monday");
  EXPECT_TRUE(e.changes.empty());
  EXPECT_EQ(e.baseline, Settings());
}

TEST(Experiment, AModelMayBeAPresetWithAChange) {
  const std::string rest = "\nbackend: cuda\nbaseline: {}\n";
  EXPECT_EQ(test::loaded("model: gpt3-1.3b" + rest).model.name, "gpt3-1.3b");
  const auto longer = test::loaded("model: {preset: gpt3-1.3b, sequence: 1024}" + rest);
  EXPECT_EQ(longer.model, (Model{"custom", 24, 2048, 16, 50304, 1024}));
  EXPECT_EQ(test::loaded("model: {preset: gpt3-1.3b}" + rest).model.name, "gpt3-1.3b");
}

TEST(Experiment, AModelMayHaveTodaysOptions) {
  const std::string rest = "\nbackend: cuda\nbaseline: {}\n";
  const auto model = [&](const std::string& text) { return test::loaded("model: " + text + rest).model; };
  EXPECT_EQ(in_words(model("llama3-8b")),
            "32 layers, hidden 4096, 32 heads, vocab 128256, sequence 8192, 8 kv_heads, ffn 14336, swiglu, rms_norm, "
            "rotary (theta 500000), untied embeddings, no biases");
  const std::string five = "{layers: 2, hidden: 64, heads: 4, vocab: 128, sequence: 32";
  EXPECT_EQ(in_words(model(five + "}")), "2 layers, hidden 64, 4 heads, vocab 128, sequence 32");
  EXPECT_EQ(in_words(model(five + ", kv_heads: 4, ffn: 256, activation: gelu, positions: learned, biases: true}")),
            "2 layers, hidden 64, 4 heads, vocab 128, sequence 32");
  EXPECT_EQ(in_words(model(five + ", kv_heads: 2, positions: rotary, biases: false}")),
            "2 layers, hidden 64, 4 heads, vocab 128, sequence 32, 2 kv_heads, rotary (theta 10000), no biases");
  EXPECT_EQ(model("{preset: llama3-8b, kv_heads: 8}").name, "llama3-8b");
  EXPECT_EQ(model("{preset: llama3-8b, kv_heads: 4}").name, "custom");
}

TEST(Experiment, KeysOfAModelThatDoNotGoTogetherAreNamed) {
  const auto complaint = [](const std::string& more) {
    return test::complaint_about("model: {layers: 2, hidden: 60, heads: 4, vocab: 128, sequence: 32, " + more +
                                 "}\nbackend: cuda\nbaseline: {}\n");
  };
  EXPECT_THAT(complaint("kv_heads: 3"), HasSubstr("kv_heads 3 does not divide heads 4"));
  EXPECT_THAT(complaint("positions: rotary"), HasSubstr("hidden 60 / heads 4 = 15 is odd"));
  EXPECT_THAT(complaint("rope_theta: 500"), HasSubstr("rope_theta goes with positions: rotary"));
  EXPECT_THAT(complaint("positions: rotary, rope_theta: 1"), HasSubstr("a number above 1"));
  EXPECT_THAT(complaint("activation: swigluu"), HasSubstr("did you mean swiglu?"));
  EXPECT_THAT(complaint("norm: rmsnorm"), HasSubstr("allowed: layer_norm, rms_norm"));
  EXPECT_THAT(complaint("biases: maybe"), HasSubstr("model.biases"));
  EXPECT_THAT(complaint("num_query_groups: 2"), HasSubstr("here it is model.kv_heads"));
  EXPECT_EQ(complaint("kv_heads: 2"), "");
}

// As in nccl-tests: a ladder of sizes in one word.
TEST(Sweep, ARangeOfSizesIsEachOfThem) {
  const auto with = [](const std::string& sizes) {
    return "workload: collective\nbackend: cpu\nbaseline: {message_size: 32 B}\nsweep: {message_size: " + sizes + "}\n";
  };
  const auto values = [&](const std::string& sizes) {
    std::vector<std::string> found;
    for (const Change& change : test::loaded(with(sizes)).changes) found.push_back(change.value);
    return found;
  };
  using ::testing::ElementsAre;
  EXPECT_THAT(values("[8 B..128 B x2]"), ElementsAre("8 B", "16 B", "64 B", "128 B"));  // 32 B is the baseline
  EXPECT_THAT(values("[8B..128B]"), ElementsAre("8 B", "16 B", "64 B", "128 B"));
  EXPECT_THAT(values("[1 KiB..100 KiB x4, 1 MiB]"), ElementsAre("1 KiB", "4 KiB", "16 KiB", "64 KiB", "1 MiB"));
  EXPECT_EQ(values("[8 B..8 GiB x2]").size(), 30u);
  const auto says = [&](const std::string& sizes) { return test::complaint_about(with(sizes)); };
  EXPECT_THAT(says("[1 MiB..8 B]"), HasSubstr("sweep.message_size[0]: found '1 MiB..8 B', whose end is not above"));
  EXPECT_THAT(says("[8 B..8 B]"), HasSubstr("whose end is not above"));
  for (const char* empty : {"[0 B..8 B x2]", "[0..8 B]", "[0 B..0 B]"})
    EXPECT_THAT(says(empty), AllOf(HasSubstr("which begins below 1 B"), Not(HasSubstr("whose end")))) << empty;
  EXPECT_THAT(says("[8 B..1 KiB x1]"), HasSubstr("found 1; allowed: 2 to 1024"));
  EXPECT_THAT(says("[8 B..many]"), HasSubstr("sweep.message_size[0]: "));
  EXPECT_THAT(says("[8 B..32 B x2, 16 B]"), HasSubstr("16 B is in the list twice"));
}

// ---- The section `cost`.

std::string said(const std::string& section) {
  return test::complaint_about(test::issue_example() + section);
}

TEST(CostSection, IsReadFromAConfigurationAndFromItsText) {
  const std::string text = test::issue_example() + "cost: {per_gpu_hour: 2.50, currency: EUR, run: {tokens: 300e9}}\n";
  const Experiment e = test::loaded(text);
  ASSERT_TRUE(e.cost);
  EXPECT_EQ(e.cost->per_gpu_hour, 2.5);
  EXPECT_EQ(e.cost->run_tokens, 300e9);
  EXPECT_EQ(e.cost->currency, "EUR");
  const std::vector<std::string> overrides{"cost.per_gpu_hour=4", "measure.rounds=3"};
  const auto of_text = cost_of_text(text, overrides);
  ASSERT_TRUE(of_text);
  EXPECT_EQ(of_text->per_gpu_hour, 4);
  EXPECT_FALSE(test::loaded(test::issue_example()).cost);
}

TEST(CostSection, MistakesAreNamedWithTheirPlace) {
  EXPECT_THAT(said("cost: {per_gpu_hour: 2.50}\n"), HasSubstr("cost.run: missing"));
  EXPECT_THAT(said("cost: {per_gpu_hour: -1, run: {tokens: 1e9}}\n"), HasSubstr("cost.per_gpu_hour: found '-1'"));
  EXPECT_THAT(said("cost: {per_gpu_hour: 1, run: {token: 1e9}}\n"), HasSubstr("did you mean tokens?"));
  EXPECT_THAT(said("cost: {per_gpu_hour: 1, currency: '$(x)', run: {tokens: 1e9}}\n"),
              HasSubstr("cost.currency: found"));
  EXPECT_THAT(said("cost: {per_gpu_hour: 1, run: {tokens: inf}}\n"), HasSubstr("cost.run.tokens: found"));
  EXPECT_THAT(said("per_gpu_hour: 1\n"), HasSubstr("did you mean cost.per_gpu_hour?"));
}

TEST(CostSection, TextThatIsNoConfigurationHasNone) {
  for (const char* text : {"", "cost", "[", "cost: 3", "cost: {per_gpu_hour: x, run: {tokens: 1}}", "\x1b[2J: 1"}) {
    EXPECT_FALSE(cost_of_text(text, {})) << text;
  }
}

}  // namespace
}  // namespace harness::config
