#include "config/frameworks/framework.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "config/registry.h"
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
  EXPECT_THAT(words_in(Framework::deepspeed, "precision", s).note, HasSubstr("MXFP8BlockScaling()"));
  EXPECT_THAT(words_in(Framework::torchtitan, "precision", s).note, HasSubstr("mxfp8_cublas"));
}

TEST(Frameworks, AValueWithoutAnEquivalentIsNamed) {
  const auto rows = rows_of(Framework::deepspeed);
  const auto stage = std::ranges::find(rows, "zero_optimization.stage", &FrameworkRow::key);
  ASSERT_NE(stage, rows.end());
  EXPECT_EQ(parse_theirs(*stage, "2"), "gradients");
  EXPECT_EQ(test::error_of([&] { parse_theirs(*stage, "4"); }),
            "zero_optimization.stage '4' has no equivalent; known: 0, 1, 2, 3");
}

// What a framework does without the key is said so; of any other value, that it has none.
TEST(Frameworks, WhereNothingIsWrittenTheKeyIsOmitted) {
  struct Left {
    Framework framework;
    const char *variable, *value, *note;
  };
  for (const auto& [framework, variable, value, note] :
       std::vector<Left>{{Framework::megatron, "overlap_grad_reduce", "false", "omit --overlap-grad-reduce"},
                         {Framework::megatron, "sharding", "none",
                          "omit --use-distributed-optimizer, --use-megatron-fsdp, --data-parallel-sharding-strategy"},
                         {Framework::megatron, "rank_order", "tp-dp-pp", "omit --use-tp-pp-dp-mapping"},
                         {Framework::megatron, "rank_order", "dp-tp-pp", ""},
                         {Framework::megatron, "pipeline_schedule", "gpipe", ""},
                         {Framework::torchtitan, "fusion", "false", "omit compile.enable"},
                         {Framework::deepspeed, "gradient_accumulation", "auto", "omit gradient_accumulation_steps"},
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
  EXPECT_EQ(known_elsewhere_as("--num-virtual-stages-per-pipeline-rank"), "here it is virtual_pipeline");
}

}  // namespace
}  // namespace harness::config
