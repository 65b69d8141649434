#include "report/table.h"

#include <gtest/gtest.h>

#include <sstream>

#include "report/clean_text.h"
#include "report/show.h"
#include "report/terminal.h"
#include "support/sample_results.h"

namespace harness::report {
namespace {

std::string text_of(const std::vector<Table>& tables) {
  std::string out;
  for (const Table& table : tables) out += table.text() + "\n";
  return out;
}

TEST(Narrow, WhatFitsStays) {
  const Table table{{{"rank", true}, {"ms"}}, {{"0", "1.5"}}};
  EXPECT_EQ(text_of(narrowed(table, 9)), "rank   ms\n0     1.5\n\n");
}

TEST(Narrow, WordsGoOnBelow) {
  const Table table{{{"variable", true}, {"share"}, {"acts on", true}, {"here", true}},
                    {{"layout", "50 %", "matrix products, pipeline bubble", "TP2 failed"},
                     {"threads", "24 %", "attention", "not tried"}}};
  EXPECT_EQ(text_of(narrowed(table, 45)),
            "variable  share  acts on           here\n"
            "layout     50 %  matrix products,  TP2 failed\n"
            "                 pipeline bubble\n"
            "threads    24 %  attention         not tried\n\n");
}

TEST(Narrow, ColumnsThatDoNotFitFollowWithTheFirst) {
  const Table table{{{"part", true}, {"ms"}, {"rank 0"}, {"rank 1"}}, {{"idle, host", "10", "20", "30"}}};
  EXPECT_EQ(text_of(narrowed(table, 24)),
            "part        ms  rank 0\n"
            "idle, host  10      20\n\n"
            "part        rank 1\n"
            "idle, host      30\n\n");
}

// Of all tables of a report with everything in it, at many widths: no line too long, no word lost.
TEST(Narrow, ABreakdownFitsEightyColumnsWhole) {
  const store::Result result = test::samples::everything();
  const analysis::Findings findings = analysis::find_all(result);
  for (const std::size_t width : {72U, 80U, 100U, 140U}) {
    Document document = breakdown_document(result, findings);
    const std::string whole = write_text(document, 400);
    arrange(document, {.width = width});
    const std::string text = write_text(document, width);
    std::istringstream lines(text);
    for (std::string line; std::getline(lines, line);) EXPECT_LE(columns_of(line), width) << line;
    std::istringstream words(whole.substr(whole.find("Where the step goes")));
    for (std::string word; words >> word;) EXPECT_NE(text.find(word), std::string::npos) << word;
  }
}

}  // namespace
}  // namespace harness::report
