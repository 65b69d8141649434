#include "config/experiment.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "config_files.h"

namespace harness::config {
namespace {

using ::testing::HasSubstr;

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
