// export --format harness: what it writes can be planned, and says why.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "report/golden.h"
#include "said.h"
#include "support/sample_results.h"

namespace harness::cli {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

class NextConfiguration : public Readers {};

constexpr const char* model = "backend: cpu\nmodel: {layers: 4, hidden: 128, heads: 4, vocab: 2048, sequence: 128}\n";

// Two single winners of one variable, one of each of two others, and everything that may leave a list.
store::Result sweep_with_a_configuration() {
  store::Result result = test::samples::sweep(
      {"micro_batch_size=2", "micro_batch_size=4", "overlap_grad_reduce=false", "precision=bf16",
       "layout={tensor_parallel: 2, pipeline_parallel: 1}", "layout={tensor_parallel: 1, pipeline_parallel: 2}"},
      {1, 1, 0.95, 0.85, 0.92, 0.9, 1.3, 1.0005});
  result.config_path = "laptop.yaml";
  result.config_text =
      "name: laptop  # ours\n" + std::string(model) +
      "baseline: {precision: fp32, global_batch_size: 16, micro_batch_size: 1, overlap_grad_reduce: true}\n"
      "sweep:\n  micro_batch_size: [1, 2, 4, 16]\n  overlap_grad_reduce: [false]\n  precision: [bf16]\n"
      "  layout: [{tensor_parallel: 2}, {pipeline_parallel: 2}]\n"
      "measure: {rounds: 4, deadlines: {start: 60 s, step: 30 s}}\noutput: 'results/{name}-{date}.h5'\n";
  result.overrides = {"measure.rounds=12", "sweep.bucket_size=[2 MiB]"};
  return result;
}

TEST_F(NextConfiguration, ExportWritesTheNextConfiguration) {
  const auto a = write("a.h5", sweep_with_a_configuration());
  const Said said = say({"export", a, "--format", "harness"});
  EXPECT_EQ(said.code, 0) << said.err;
  test::expect_golden("next.yaml", said.out);
  const auto next = folder_.write("next.yaml", said.out);
  const Said planned = say({"plan", next, "--ranks", "4"});
  EXPECT_EQ(planned.code, 0) << planned.err << said.out;
  EXPECT_THAT(planned.out, HasSubstr("\nprecision=bf16 + overlap_grad_reduce=false"));
}

// The flags of any case, proven or not, also where nothing has been measured.
TEST_F(NextConfiguration, ExportWritesTheFlagsOfAPlannedCase) {
  const auto a = write("a.h5", sweep_with_a_configuration());
  const Said slower = say({"export", a, "--format", "megatron", "--case", "TP2"});
  EXPECT_EQ(slower.code, 0) << slower.err;
  test::expect_golden("export.planned", slower.out);
  EXPECT_THAT(say({"export", a, "--format", "megatron", "--case", "TP3"}).err, HasSubstr("there is no case 'TP3'"));
  EXPECT_THAT(say({"export", a, "--format", "env", "--case", "baseline"}).out, HasSubstr("): the baseline.\n"));

  const std::string config =
      folder_.write("job.yaml", std::string(model) +
                                    "baseline: {global_batch_size: 16, micro_batch_size: 2}\n"
                                    "sweep: {layout: [{tensor_parallel: 2}], precision: [bf16]}\n");
  const Said baseline = say({"export", config, "--format", "megatron"});
  EXPECT_EQ(baseline.code, 0) << baseline.err;
  EXPECT_THAT(baseline.out, HasSubstr("# All settings of baseline in " + config + ": planned, not measured.\n"));
  EXPECT_THAT(baseline.out, HasSubstr("\n  --micro-batch-size 2\n"));
  EXPECT_THAT(baseline.out, Not(HasSubstr("--bf16")));
  EXPECT_THAT(say({"export", config, "--format", "megatron", "--case", "precision=bf16"}).out,
              HasSubstr("\n  --bf16\n"));
  EXPECT_THAT(say({"export", config, "--format", "deepspeed"}).out, HasSubstr("\"train_batch_size\": 16"));
  EXPECT_THAT(say({"export", config, "--format", "megatron", "--case", "precision=fp8"}).err,
              HasSubstr("there is no case 'precision=fp8'"));
  EXPECT_THAT(say({"export", config}).err, HasSubstr("is a configuration already"));
}

TEST_F(NextConfiguration, TheNextConfigurationOfTwoWinnersSweepsTheSecondOnTopOfTheFirst) {
  store::Result result = test::samples::sweep({"micro_batch_size=4", "precision=bf16"}, {1, 1, 0.85, 0.9});
  result.config_text = sweep_with_a_configuration().config_text;
  const Said said = say({"export", write("a.h5", result), "--format", "harness"});
  EXPECT_EQ(said.code, 0) << said.err;
  EXPECT_THAT(
      said.out,
      HasSubstr("# precision=bf16 was proven against the former baseline, not yet together with micro_batch_size=4\n"));
  EXPECT_THAT(said.out, Not(HasSubstr("combine:")));
  EXPECT_EQ(say({"plan", folder_.write("next.yaml", said.out), "--ranks", "4"}).code, 0) << said.out;
  // One of them alone: the other stays in its list without a word about both.
  const Said alone = say({"export", folder_ / "a.h5", "--format", "harness", "--case", "precision=bf16"});
  EXPECT_THAT(alone.out, HasSubstr("\n  precision: bf16\n"));
  EXPECT_THAT(alone.out, Not(HasSubstr("together")));
}

TEST_F(NextConfiguration, AProvenCombinationBecomesTheBaseline) {
  store::Result result = test::samples::sweep({"micro_batch_size=4", "a"}, {1, 1, 0.9, 0.8});
  result.cases[3].variable = "combine";
  result.cases[3].value = result.cases[3].name = "precision=bf16 + micro_batch_size=2";
  result.cases[3].settings[0] = "bf16";
  result.cases[3].settings[1] = "2";
  result.config_text = std::string(model) +
                       "baseline: {global_batch_size: 16, micro_batch_size: 1}\nsweep: {micro_batch_size: [4]}\n"
                       "combine: [{precision: bf16, micro_batch_size: 2}]\n";
  const Said said = say({"export", write("a.h5", result), "--format", "harness"});
  EXPECT_EQ(said.code, 0) << said.err;
  EXPECT_THAT(said.out, HasSubstr("\n  micro_batch_size: 2\n"));
  EXPECT_THAT(said.out, HasSubstr("\n  precision: bf16\n"));
  EXPECT_THAT(said.out, HasSubstr("\n  micro_batch_size: [4]\n"));
  EXPECT_THAT(said.out, Not(HasSubstr("\ncombine")));
  EXPECT_EQ(say({"plan", folder_.write("next.yaml", said.out), "--ranks", "4"}).code, 0) << said.out;
}

TEST_F(NextConfiguration, WithoutAWinnerTheNextConfigurationSaysSo) {
  store::Result result = test::samples::sweep({"micro_batch_size=2"}, {1, 1, 1.3});
  EXPECT_THAT(say({"export", write("bare.h5", result), "--format", "harness"}).err, HasSubstr("configuration"));
  result.config_text = std::string(model) + "baseline: {}\nsweep: {micro_batch_size: [2]}\n";
  const Said said = say({"export", write("a.h5", result), "--format", "harness"});
  EXPECT_EQ(said.code, 0) << said.err;
  EXPECT_THAT(said.out, HasSubstr("Nothing is proven faster: the baseline stays as it was."));
  EXPECT_THAT(said.out, HasSubstr("Nothing is left to try"));
  EXPECT_EQ(say({"plan", folder_.write("next.yaml", said.out), "--ranks", "4"}).code, 0) << said.out;
}

// Its first fix is the value that the baseline takes.
TEST_F(NextConfiguration, ALadderOfTheFormerBaselineIsLeftOut) {
  store::Result result = test::samples::sweep({"micro_batch_size=4"}, {1, 1, 0.85});
  result.config_text = sweep_with_a_configuration().config_text +
                       "ladder: [{batches: {micro_batch_size: 4}}, {overlap: {overlap_grad_reduce: false}}]\n";
  const Said said = say({"export", write("a.h5", result), "--format", "harness"});
  EXPECT_EQ(said.code, 0) << said.err;
  EXPECT_THAT(said.out, HasSubstr("\n# ladder: left out"));
  const Said planned = say({"plan", folder_.write("next.yaml", said.out), "--ranks", "4"});
  EXPECT_EQ(planned.code, 0) << planned.err << said.out;
}

}  // namespace
}  // namespace harness::cli
