#include "config/frameworks/framework.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "config/registry.h"
#include "support/errors.h"

namespace harness::config {
namespace {

using ::testing::HasSubstr;

constexpr std::array<Framework, 4> all{Framework::megatron, Framework::deepspeed, Framework::torchtitan,
                                       Framework::pytorch};

// Settings with each of the values that a variable's row names, and so many pipeline stages that schedules are written.
std::vector<Settings> settings_with_values_of(const Variable& v) {
  std::vector<std::string> values = v.choices.words;
  values.insert(values.end(), v.examples.begin(), v.examples.end());
  std::vector<Settings> settings;
  for (const std::string& value : values) {
    settings.emplace_back();
    settings.back().layout = {{program::Axis::pipeline, 4}};
    if (v.name == "virtual_pipeline") settings.back().pipeline_schedule = PipelineSchedule::interleaved;
    v.parse(settings.back(), value);
  }
  return settings;
}

// The value of a row's variable, or of the part of it that the row is about.
std::string ours_of(const FrameworkRow& row, const Settings& s) {
  const std::size_t dot = row.here.find('.');
  const std::string whole = printed(row.here.substr(0, dot), s);
  if (dot == std::string::npos) return whole;
  const std::string part = row.here.substr(dot + 1) + ": ";
  const std::size_t at = whole.find(part) + part.size();
  return whole.substr(at, whole.find_first_of(",}", at) - at);
}

TEST(Frameworks, EveryWrittenRowIsOfSomethingThatExists) {
  for (const Framework framework : all) {
    for (const FrameworkRow& row : rows_of(framework)) {
      const std::string name = row.here.substr(0, row.here.find_first_of(".:,"));
      EXPECT_TRUE(find_variable(name) != nullptr || name == "model" || name == "measure") << row.key << row.here;
      EXPECT_TRUE(row.print_model == nullptr || name == "model") << row.key;
    }
  }
}

// One of the keys that are written for a variable reads back as its value.
TEST(Frameworks, WhatIsWrittenReadsBackAsItself) {
  for (const Framework framework : all) {
    for (const Variable& v : registry()) {
      for (const Settings& s : settings_with_values_of(v)) {
        bool readable = false, same = false;
        for (const auto& [key, theirs] : words_in(framework, v.name, s).flags) {
          for (const FrameworkRow& row : rows_of(framework)) {
            if (row.key != key || row.here.substr(0, row.here.find('.')) != v.name) continue;
            const auto ours = parse_theirs(row, theirs);
            readable = readable || ours;
            same = same || ours == ours_of(row, s);
          }
        }
        EXPECT_EQ(readable, same) << v.name << " " << v.print(s);
      }
    }
  }
}

TEST(Frameworks, ScalesOfBlocksAreARecipe) {
  Settings s;
  s.precision = Precision::mxfp8;
  EXPECT_EQ(words_in(Framework::megatron, "precision", s).flags,
            (NameValues{{"--bf16", ""}, {"--fp8-format", "e4m3"}, {"--fp8-recipe", "mxfp8"}}));
  EXPECT_THAT(words_in(Framework::pytorch, "precision", s).note, HasSubstr("MXFP8BlockScaling()"));
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

TEST(Frameworks, WhereNothingIsWrittenTheNoteSaysWhy) {
  Settings s;
  s.sharding = Sharding::parameters;
  EXPECT_THAT(words_in(Framework::pytorch, "sharding", s).note, HasSubstr("reshard_after_forward=True"));
  EXPECT_FALSE(words_in(Framework::pytorch, "sharding", s).known());
  EXPECT_EQ(words_in(Framework::megatron, "sharding", s).flags.size(), 3u);
  EXPECT_EQ(words_in(Framework::torchtitan, "threads", s).note, "");
}

TEST(Frameworks, ARankOrderHasAWordInMegatronOnlyWhereThereIsOne) {
  const auto flags = [](const char* order) {
    Settings settings;
    find_variable("rank_order")->parse(settings, order);
    return words_in(Framework::megatron, "rank_order", settings);
  };
  EXPECT_EQ(flags("tp-pp-dp").flags.at(0).first, "--use-tp-pp-dp-mapping");
  EXPECT_FALSE(flags("dp-tp-pp").known());
  EXPECT_THAT(flags("dp-tp-pp").note, HasSubstr("no name"));
}

TEST(Frameworks, ASchedule) {
  const auto words = [](const char* variable, const char* schedule, Framework framework, const char* chunks = "auto") {
    Settings s;
    s.layout = {{program::Axis::pipeline, 4}};
    find_variable("pipeline_schedule")->parse(s, schedule);
    find_variable("virtual_pipeline")->parse(s, chunks);
    return words_in(framework, variable, s);
  };
  const std::vector<std::pair<std::string, std::string>> two{{"--num-virtual-stages-per-pipeline-rank", "2"}},
      three{{"--num-virtual-stages-per-pipeline-rank", "3"}};
  EXPECT_EQ(words("pipeline_schedule", "interleaved", Framework::megatron).flags, two);
  EXPECT_EQ(words("virtual_pipeline", "interleaved", Framework::megatron, "3").flags, three);
  EXPECT_FALSE(words("pipeline_schedule", "gpipe", Framework::megatron).known());
  EXPECT_THAT(words("pipeline_schedule", "gpipe", Framework::pytorch).note, HasSubstr("ScheduleGPipe"));
  EXPECT_THAT(words("pipeline_schedule", "interleaved", Framework::deepspeed).note, HasSubstr("1F1B alone"));
  EXPECT_EQ(known_elsewhere_as("--num-virtual-stages-per-pipeline-rank"), "here it is virtual_pipeline");
}

}  // namespace
}  // namespace harness::config
