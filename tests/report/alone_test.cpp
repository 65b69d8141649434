// What a reader is told of cases that have processes of their own beside those that share one.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <regex>

#include "analysis/summary.h"
#include "report/page/page.h"
#include "report/show.h"
#include "support/sample_results.h"

namespace harness::report {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

// The baseline takes 5 % longer in a process of its own.
store::Result mixed() {
  store::Result result =
      test::samples::sweep({"baseline_alone", "precision=bf16", "micro_batch_size=2"}, {1, 1.001, 1.05, 0.9, 1.05});
  result.interval = "level";
  result.smallest_effect = 0.05;
  for (const std::size_t c : {2u, 4u}) result.cases[c].reference = 2;
  for (std::size_t i = 0; i < result.blocks.size(); ++i) {
    store::ResultBlock& block = result.blocks[i];
    block.start_unix_s = 1000 + static_cast<double>(i);
    block.process = result.is_alone(block.case_index) ? static_cast<std::int32_t>(i) : 1000 + block.round;
  }
  return result;
}

const char* const cost = "A process of its own changes the baseline's step time by +5.0 % ";

TEST(Alone, EveryFormSaysWhatAProcessOfItsOwnCosts) {
  const store::Result result = mixed();
  const analysis::Summary summary = analysis::summarise(result);
  const auto flat = [](const std::string& text) { return std::regex_replace(text, std::regex("\\s+"), " "); };
  for (const Format format : {Format::text, Format::md})
    EXPECT_THAT(flat(show(result, summary, format, {}, Detail::full)), HasSubstr(cost));
  EXPECT_THAT(flat(page::page(page::make_report(result))), HasSubstr("A process of its own changes the baseline"));
  const auto json = nlohmann::json::parse(show_json(result, summary));
  EXPECT_NEAR(json["processes"]["own_process"]["ratio"].get<double>(), 1.05, 0.005);
  EXPECT_FALSE(json["processes"]["own_process"].contains("verdict"));
  EXPECT_EQ(json["processes"]["processes"], 12 * 3);
  EXPECT_EQ(json["cases"][2]["reference"], nullptr);
  EXPECT_EQ(json["cases"][3]["reference"], "baseline");
  EXPECT_EQ(json["cases"][4]["reference"], "baseline_alone");
  EXPECT_EQ(json["cases"][4]["judgement"], "same");
  EXPECT_FALSE(json["level_alone"].is_null());
}

TEST(Alone, NothingIsSaidWhereThereIsNone) {
  const store::Result result = test::samples::nothing_moved();
  EXPECT_THAT(show(result, analysis::summarise(result), Format::text), Not(HasSubstr("baseline_alone")));
}

// Both medians that a reader would compare are of one kind.
TEST(Alone, TheMediansBesideAChangeAreThoseOfItsReference) {
  const store::Result result = mixed();
  EXPECT_THAT(show(result, analysis::summarise(result), Format::text),
              Not(HasSubstr("The change compares blocks that ran")));
}

}  // namespace
}  // namespace harness::report
