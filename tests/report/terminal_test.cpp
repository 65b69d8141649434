#include "report/terminal.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/error.h"
#include "report/clean_text.h"
#include "report/show.h"
#include "support/errors.h"
#include "support/sample_results.h"

namespace harness::report {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

Document everything() {
  const store::Result result = test::samples::everything();
  return show_document(result, analysis::summarise(result));
}

std::string arranged(const TableView& view) {
  Document document = everything();
  arrange(document, view);
  return write_text(document);
}

// The lines from the heading of the table of cases to the next empty one.
std::vector<std::string> table_in(const std::string& text) {
  std::vector<std::string> lines;
  std::istringstream all(text.substr(text.find("\ncase ") + 1));
  for (std::string line; std::getline(all, line) && !line.empty();) lines.push_back(line);
  return lines;
}

TEST(Terminal, WithoutLimitNothingChanges) {
  EXPECT_EQ(arranged({}), write_text(everything()));
  EXPECT_EQ(arranged({.width = 400}), write_text(everything()));
}

TEST(Terminal, ANarrowTableKeepsWhatMattersAndNamesWhatWent) {
  for (const std::size_t width : {80, 100, 120}) {
    const std::string text = arranged({.width = width});
    for (const std::string& line : table_in(text)) EXPECT_LE(columns_of(line), width) << line;
    EXPECT_THAT(table_in(text).front(), ::testing::MatchesRegex("case .*change.*95 % interval.*verdict"));
    EXPECT_THAT(text, HasSubstr("\nTP2 "));
    EXPECT_THAT(text, HasSubstr("TP2: layout={tensor_parallel: 2}; PP8: layout={pipeline_parallel: 8}."));
  }
  EXPECT_THAT(arranged({.width = 80}), HasSubstr("Left out to fit 80 columns: memory MiB, "));
}

TEST(Terminal, AShortNameSaysWhichVariableWasSwitched) {
  store::Result result = test::samples::sweep({"overlap_grad_reduce=false"}, {1, 1, 1.2});
  Document document = show_document(result, analysis::summarise(result));
  arrange(document, {.width = 80});
  EXPECT_THAT(write_text(document), HasSubstr("\noverlap_grad_reduce"));
}

TEST(Terminal, ProseIsWrappedToTheWidth) {
  std::istringstream lines(write_text(everything(), 70));
  bool in_table = false;
  for (std::string line; std::getline(lines, line);) {
    in_table = !line.empty() && (in_table || line.starts_with("case "));
    if (!in_table) {
      EXPECT_LE(columns_of(line), 70u) << line;
    }
  }
}

TEST(Terminal, AnIntervalOfAnyConfidenceGoesToo) {
  for (const double confidence : {0.95, 0.99}) {
    store::Result result = test::samples::everything();
    result.confidence = confidence;
    Document document = show_document(result, analysis::summarise(result));
    arrange(document, {.width = 50});
    EXPECT_THAT(table_in(write_text(document)).front(), Not(HasSubstr("interval")));
  }
}

TEST(Terminal, ProductsAreCalledWhatTheyAre) {
  store::Result result = test::samples::sweep(
      {"gemm={m: 512, n: 768, k: 256, transpose: b}", "gemm={m: 768, n: 256, k: 512, transpose: a}"}, {1, 1, 1.5, 2});
  for (int c = 0; c < 4; ++c) result.points.push_back({c, "gemm", 10, 1000, 0, 0, ""});
  result.points[2].uses = "qkv, forward";
  result.points[3].uses = "qkv weight gradient; head, forward";
  Document wide = show_document(result, analysis::summarise(result)), narrow = wide;
  EXPECT_THAT(write_text(wide), ::testing::ContainsRegex("transpose: b} +qkv, forward  "));
  EXPECT_THAT(write_text(wide), ::testing::ContainsRegex("case +in the step  "));
  arrange(narrow, {.width = 100});
  const std::string text = write_text(narrow);
  EXPECT_THAT(text, HasSubstr("\nqkv, forward  "));
  EXPECT_THAT(text, HasSubstr("\nqkv weight gradient; head, forward  "));
  EXPECT_THAT(text, HasSubstr("\nNamed by what they are in the model's step. "));
  for (const std::string& line : table_in(text)) EXPECT_THAT(line, Not(HasSubstr("gemm=")));
  EXPECT_THAT(text, Not(HasSubstr("in the step")));
}

TEST(Terminal, ColumnsAreAskedForWithoutUnits) {
  const std::string text = arranged({.columns = {"step", "interval", "verdict"}});
  EXPECT_THAT(table_in(text).front(), ::testing::MatchesRegex("case +step ms +95 % interval +verdict"));
  try {
    arranged({.columns = {"stepp"}});
    FAIL();
  } catch (const Error& error) {
    EXPECT_THAT(error.what(), HasSubstr("--columns 'stepp': there is no such column; allowed: case, "));
  }
}

TEST(Terminal, SortingLeavesTheBaselineOnTop) {
  const auto cases = [](const std::vector<std::string>& lines) {
    std::vector<std::string> names;
    for (std::size_t i = 1; i < lines.size(); ++i) names.push_back(lines[i].substr(0, lines[i].find("  ")));
    return names;
  };
  const auto by_change = cases(table_in(arranged({.sort = "change"})));
  ASSERT_EQ(by_change.size(), 9u);
  EXPECT_EQ(by_change[0], "baseline");
  EXPECT_EQ(by_change[1], "baseline_again");
  EXPECT_EQ(by_change.back(), "ranks=2");
  const auto position = [&](const char* name) { return std::ranges::find(by_change, name) - by_change.begin(); };
  EXPECT_LT(position("micro_batch_size=4"), position("micro_batch_size=2"));
  const auto by_name = cases(table_in(arranged({.sort = "name"})));
  EXPECT_TRUE(std::is_sorted(by_name.begin() + 2, by_name.end()));
}

TEST(Terminal, ColoursAreThoseOfVerdictsAndOfNothingElse) {
  const std::string plain = arranged({}), text = colored(plain);
  EXPECT_THAT(text, HasSubstr("\x1b[32mfaster\x1b[0m\n"));
  EXPECT_THAT(text, HasSubstr("\x1b[31mslower\x1b[0m\n"));
  EXPECT_THAT(text, HasSubstr("\x1b[31mfailed"));
  std::string stripped = text;
  for (const std::string code : {"\x1b[31m", "\x1b[32m", "\x1b[33m", "\x1b[0m"}) {
    for (std::size_t at; (at = stripped.find(code)) != std::string::npos;) stripped.erase(at, code.size());
  }
  EXPECT_EQ(stripped, plain);
}

}  // namespace
}  // namespace harness::report
