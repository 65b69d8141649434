// Changes that `--set` and its shorter forms make to a file.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "config/experiment.h"
#include "config_files.h"

namespace harness::config {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

TEST(Overrides, SetAnyKey) {
  const std::vector<std::string> overrides{"measure.rounds=4",
                                           "micro_batch_size=2",
                                           "baseline.bucket_size = 2 MiB",
                                           "backend=cpu",
                                           "sweep.micro_batch_size=[1, 4]",
                                           "model.layers=2",
                                           "measure.deadlines.step=5 s",
                                           "layout.tensor_parallel=2",
                                           "sweep.layout=[{tensor_parallel: 4}]",
                                           "output={name}.h5",
                                           "measure={seed: 7}",
                                           "measure.rounds=5"};
  const Experiment e = test::loaded(test::issue_example(), overrides);
  EXPECT_EQ(e.measure.rounds, 5);  // the later one wins
  EXPECT_EQ(e.measure.steps, 6);   // a map changes only what it names
  EXPECT_EQ(e.measure.seed, 7u);
  EXPECT_EQ(e.baseline.micro_batch_size, 2);
  EXPECT_EQ(e.baseline.bucket_size_bytes, 2 << 20);
  EXPECT_EQ(e.model.layers, 2);
  EXPECT_EQ(e.measure.deadlines.step_s, 5);
  EXPECT_EQ(e.measure.deadlines.start_s, 60);
  EXPECT_FALSE(e.measure.usual_start);
  EXPECT_EQ(e.baseline.layout, (program::Layout{{program::Axis::tensor, 2}, {program::Axis::pipeline, 1}}));
  EXPECT_EQ(e.output, "{name}.h5");
  EXPECT_EQ(e.changes[0].settings.micro_batch_size, 1);
  EXPECT_EQ(e.changes[2].settings.layout[program::Axis::tensor], 4);
  EXPECT_EQ(e.overrides, overrides);
  EXPECT_EQ(e.text, test::issue_example());
}

TEST(Overrides, ASweepIsReplacedAndAPresetChanged) {
  const std::string text = "model: gpt3-125m\nbackend: cuda\nbaseline: {}\nsweep: {micro_batch_size: [2]}\n";
  const Experiment e = test::loaded(text, {"sweep={ranks: [1, 2]}", "model.layers=3", "nccl_algo=allreduce:ring"});
  ASSERT_EQ(e.changes.size(), 2u);
  EXPECT_EQ(e.changes[0].variable, "ranks");
  EXPECT_EQ(e.model.layers, 3);
  EXPECT_EQ(e.model.hidden, 768);
  EXPECT_EQ(e.baseline.nccl.at("nccl_algo"), "AllReduce:Ring");
  EXPECT_EQ(test::loaded(text, {"model=gpt3-350m"}).model.name, "gpt3-350m");
}

// Only within one place are two settings that decide the same value refused.
TEST(Overrides, DecideInsteadOfWhatTheFileSays) {
  EXPECT_EQ(test::loaded(test::issue_example(), {"gradient_accumulation=4"}).baseline.gradient_accumulation, 4);
  EXPECT_EQ(test::complaint_about(test::issue_example(), {"gradient_accumulation=auto"}), "");
  EXPECT_THAT(test::complaint_about(test::issue_example(), {"gradient_accumulation=4", "global_batch_size=8"}),
              HasSubstr("gradient_accumulation 4 decides it"));
}

TEST(Overrides, MendABrokenFile) {
  const std::string text = "model: gpt3-12m\nbackend: cuda\nbaseline: {}\n";
  EXPECT_NE(test::complaint_about(text), "");
  EXPECT_EQ(test::complaint_about(text, {"model=gpt3-125m"}), "");
}

TEST(Overrides, ProblemsNameTheOverride) {
  const auto says = [&](const std::string& override_text, const std::string& expected) {
    const std::string message = test::complaint_about(test::issue_example(), {override_text});
    EXPECT_TRUE(message.starts_with("--set " + override_text + ": ")) << message;
    EXPECT_THAT(message, HasSubstr(expected));
    EXPECT_THAT(message, Not(HasSubstr("\n")));
  };
  says("measure.rounds=four", "measure.rounds: found 'four'; expected a whole number");
  says("mesure.rounds=4", "mesure: unknown key");
  says("mesure.rounds=4", "did you mean measure?");
  says("measure.round=4", "did you mean measure.rounds?");
  says("rounds=4", "did you mean measure.rounds?");
  says("micro_batch_sise=2", "did you mean baseline.micro_batch_size?");
  says("measure.rounds", "expected key=value");
  says("=4", "expected key=value");
  says("measure.rounds=", "measure.rounds: found nothing");
  says("sweep.micro_batch_size=2", "expected a list of values to try, such as [2]");
  says("sweep.micro_batch_size=[2, 2]", "twice");
  says("sweep.micro_batch_size=[2, 4", "not YAML");
  says("sweep.micro_batch_size=[&a 2, *a]", "anchor");
  says("layout={tensor_paralel: 2}", "did you mean tensor_parallel?");
  says("model.layers.deep=2", "which has no keys");
  says("backend=gpu", "backend: found 'gpu'; allowed: cpu, cuda");
}

}  // namespace
}  // namespace harness::config
