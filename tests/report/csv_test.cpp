// Cells of CSV: clean, one cell each, and no formula of somebody else's.
#include <gtest/gtest.h>

#include <random>

#include "analysis/summary.h"
#include "base/text.h"
#include "report/full_result.h"
#include "report/show.h"

namespace harness::report {
namespace {

// As RFC 4180 says, by lines.
std::vector<std::vector<std::string>> cells_of(const std::string& csv) {
  std::vector<std::vector<std::string>> lines(1, std::vector<std::string>(1));
  bool quoted = false;
  for (std::size_t i = 0; i < csv.size(); ++i) {
    std::string& cell = lines.back().back();
    if (quoted && csv[i] == '"' && i + 1 < csv.size() && csv[i + 1] == '"') {
      cell += csv[++i];
    } else if (csv[i] == '"') {
      quoted = !quoted;
    } else if (!quoted && csv[i] == ',') {
      lines.back().emplace_back();
    } else if (!quoted && csv[i] == '\n') {
      lines.emplace_back(1);
    } else {
      cell += csv[i];
    }
  }
  lines.pop_back();
  return lines;
}

std::string case_named(const std::string& name) {
  store::Result result = test::samples::full();
  result.cases[4].name = name;
  const auto lines = cells_of(show_csv(result, analysis::summarise(result)));
  for (const auto& line : lines) EXPECT_EQ(line.size(), lines.front().size()) << escaped(name);
  return lines.at(5).at(0);
}

TEST(Csv, ATextThatASpreadsheetWouldComputeHasAnApostrophe) {
  for (const char* formula : {"=HYPERLINK(\"http://x\",\"y\")", "+1+cmd|' /C calc'!A0", "-2+3", "@SUM(1)", "=", "-",
                              "  =1", "\t=1", "+", "-x", "-="}) {
    EXPECT_EQ(case_named(formula), std::string("'") + formula) << formula;
  }
  for (const char* text : {"-1", "+1.5", "-1e-5", "a=b", "1-2", "x@y", ""}) EXPECT_EQ(case_named(text), text);
}

TEST(Csv, AnyTextIsOneCleanCell) {
  std::mt19937 random(20261126);
  for (int i = 0; i < 300; ++i) {
    std::string name;
    for (unsigned n = random() % 12; n > 0; --n)
      name += static_cast<char>(random() % 4 == 0 ? random() : ",\"\n\r=a\x1b"[random() % 7]);
    const std::string cell = case_named(name);
    EXPECT_EQ(cell, escaped_lines(cell)) << escaped(name);
  }
}

}  // namespace
}  // namespace harness::report
