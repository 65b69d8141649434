// The report on settings that are compared at several sizes of one operation.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "analysis/summary.h"
#include "full_result.h"
#include "golden.h"
#include "report/document.h"
#include "report/page/page.h"
#include "report/sections.h"
#include "support/errors.h"

namespace harness::report {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

// Halving and doubling is faster at 1 kB and slower at 1 GB; out of place changes nothing.
store::Result grid() {
  return test::operations(
      {"message_size=1 GB", "baseline_again at message_size=1 GB", "allreduce_algorithm=halving_doubling",
       "allreduce_algorithm=halving_doubling at message_size=1 GB", "in_place=false",
       "in_place=false at message_size=1 GB"},
      {1, 1, 1e4, 1e4, 0.8, 1.5e4, 1, 1e4}, 1.5);
}

std::string at_width(const store::Result& result, std::size_t width = 0) {
  Document document = show_document(result, analysis::summarise(result));
  arrange(document, {.width = width});
  return write_text(document, width == 0 ? 400 : width);
}

// Rows are sizes and columns are settings; the headline counts the sizes of each setting.
TEST(Grid, Golden) {
  test::expect_golden("grid.txt", shown(grid()));
}

TEST(Grid, ANarrowTerminalHasTheSizesInEveryPart) {
  const std::string text = at_width(grid(), 80);
  std::istringstream lines(text);
  std::size_t tables = 0;
  for (std::string line; std::getline(lines, line);) {
    EXPECT_LE(line.size(), 80u) << line;
    tables += line.starts_with("    size B  ");
  }
  EXPECT_GE(tables, 2u);
}

TEST(Grid, ColumnsAreAskedForBySettingOrUnit) {
  const auto headings = [](const std::string& column) {
    const store::Result result = grid();
    Document document = show_document(result, analysis::summarise(result));
    arrange(document, {.columns = {column}});
    const std::string text = write_text(document, 400);
    return text.substr(text.find("    size B"), text.find('\n', text.find("    size B")) - text.find("    size B"));
  };
  EXPECT_EQ(headings("baseline"), "    size B  baseline us  baseline GB/s");
  EXPECT_EQ(headings("change"), "    size B            halving_doubling change          out of place change");
  EXPECT_THAT(test::error_of([&] { headings("of place changed"); }), HasSubstr("there is no such column"));
}

TEST(Grid, ALongSettingIsNumberedAndExplained) {
  store::Result result = grid();
  for (const std::size_t c : {6u, 7u}) {
    result.cases[c].variable = "env";
    result.cases[c].value = "{NCCL_IB_QPS_PER_CONNECTION: 4}";
  }
  EXPECT_THAT(at_width(result),
              AllOf(HasSubstr("setting 2 us"), HasSubstr("setting 2: env={NCCL_IB_QPS_PER_CONNECTION: 4}.")));
}

TEST(Grid, ACaseThatFailedHasItsReasonAsANote) {
  store::Result result = grid();
  result.cases[5].status = store::CaseStatus::failed;
  result.cases[5].reason = "rank 1 said no";
  for (store::ResultBlock& block : result.blocks) {
    if (block.case_index == 5) block.status = store::BlockStatus::failed;
  }
  EXPECT_THAT(at_width(result),
              AllOf(HasSubstr("failed [1]"),
                    HasSubstr("[1] allreduce_algorithm=halving_doubling at message_size=1 GB: rank 1 said no")));
}

TEST(Grid, JsonAndThePageHaveEveryCase) {
  const store::Result result = grid();
  const auto json = json_of(result);
  EXPECT_EQ(json["cases"][2]["reference"], nullptr);
  EXPECT_EQ(json["cases"][3]["reference"], "message_size=1 GB");
  EXPECT_EQ(json["cases"][4]["reference"], "baseline");
  EXPECT_EQ(json["cases"][5]["reference"], "message_size=1 GB");
  EXPECT_EQ(json["cases"][5]["judgement"], "slower");
  ASSERT_EQ(json["levels"].size(), 2u);
  EXPECT_EQ(json["levels"][1]["reference"], "message_size=1 GB");
  EXPECT_THAT(page::page(page::make_report(result, analysis::find_all(result))),
              AllOf(HasSubstr("halving_doubling change"), HasSubstr("in_place=false at message_size=1 GB")));
}

}  // namespace
}  // namespace harness::report
