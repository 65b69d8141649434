// The three writers of a document: common properties, and that no text of a file becomes markup or moves a cursor.
#include "report/document.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/text.h"
#include "golden.h"
#include "report/page/page.h"
#include "report/sections.h"
#include "report/words.h"
#include "support/errors.h"
#include "support/sample_results.h"

namespace harness::report {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

Document with(std::vector<Piece> pieces) {
  Document document = with_section({"s", "A section", std::move(pieces)});
  document.headline = "What moved.";
  return document;
}

Table two_by_two() {
  Table table;
  table.columns = {{"case", true}, {"ms"}};
  table.rows = {{"baseline", "1.5"}, {"a=1", "10.25"}};
  return table;
}

TEST(Writers, EveryPieceIsInEveryFormat) {
  Figure figure;
  figure.id = "f";
  figure.title = "A drawing.";
  figure.numbers = two_by_two();
  const Document document = with({Subheading{"below"}, Paragraph{"a paragraph"}, List{{"an item"}},
                                  Numbers{"a caption", two_by_two()}, figure, Listing{"a listing", "key: value\n"}});
  for (const std::string& text : {write_text(document), write_markdown(document), page::page(document)}) {
    EXPECT_THAT(text,
                AllOf(HasSubstr("What moved."), HasSubstr("A section"), HasSubstr("below"), HasSubstr("a paragraph"),
                      HasSubstr("an item"), HasSubstr("a caption"), HasSubstr("A drawing."), HasSubstr("key: value")));
  }
}

TEST(Writers, APageKeepsANumberAndItsPercentSignOnOneLine) {
  Table table;
  table.columns = {{"case", true}, {"change"}};
  table.rows = {{"a=1", "faster -20.0 % [-20.1 %, -19.9 %]"}};
  EXPECT_THAT(page::page(with({Numbers{"", table}})),
              HasSubstr("<td>faster -20.0\u00a0% [-20.1\u00a0%, -19.9\u00a0%]</td>"));
}

TEST(Writers, AnEmptySectionLeavesNoTrace) {
  Document document = with({});
  EXPECT_EQ(write_text(document), "What moved.\n");
  EXPECT_EQ(write_markdown(document), "**What moved.**\n");
  Figure figure;
  figure.title = "busbw by size";
  figure.drawing = "<svg></svg>";
  document.sections[0].title = "Drawings";
  document.sections[0].add(figure);
  EXPECT_THAT(write_markdown(document), Not(HasSubstr("Drawings")));
}

TEST(Writers, NoTextOfAFileBecomesMarkupOrMovesTheCursor) {
  const std::string bad = "<script>\x1b[2J\xff | [x](y) `c`";
  Table table;
  table.columns = {{bad, true}};
  table.rows = {{bad}};
  Figure figure;
  figure.id = figure.title = figure.caption = bad;
  figure.numbers = table;
  figure.legend = {{"swatch", bad}};
  Document document =
      with({Subheading{bad}, Paragraph{bad}, List{{bad}}, Numbers{bad, table}, figure, Listing{bad, bad}});
  document.title = document.subtitle = document.headline = document.footer = document.sections[0].title = bad;
  document.notices = {{bad}};
  EXPECT_THAT(write_text(document), AllOf(Not(HasSubstr("\x1b")), Not(HasSubstr("\xff"))));
  EXPECT_THAT(page::page(document), AllOf(Not(HasSubstr("\x1b")), Not(HasSubstr("<script"))));
  const std::string markdown = write_markdown(document);
  EXPECT_THAT(markdown.substr(0, markdown.find("```")),
              AllOf(Not(HasSubstr("\x1b")), Not(HasSubstr("<script")), Not(HasSubstr("[x](y)"))));
}

TEST(OneLine, KeepsLettersAndLosesCommands) {
  EXPECT_EQ(one_line("a\x1b[31mb\tc\x7f"), "a [31mb c ");
  EXPECT_EQ(one_line("Zürich ± 5 µs … €"), "Zürich ± 5 µs … €");
  EXPECT_EQ(one_line("a\xc2\x9b"
                     "b\xe2\x80\xae\xe2\x81\xa6"
                     "c"),
            "a b  c");
  EXPECT_EQ(one_line("a\xff\xc3"), "a??");
}

Document everything() {
  const store::Result result = test::samples::everything();
  return show_document(result, analysis::summarise(result));
}

std::string arranged(Document document, const TableView& view, bool colored = false) {
  arrange(document, view);
  return write_text(document, 400, colored);
}
std::string arranged(const TableView& view, bool colored = false) {
  return arranged(everything(), view, colored);
}

// Returns the headings left out when almost nothing fits, in the order of their removal.
std::string left_out_of(const Document& document) {
  const std::string text = arranged(document, {.width = 20});
  const std::string before = "Left out to fit: ";
  const std::size_t begin = text.find(before) + before.size();
  return text.substr(begin, text.find(" (--columns", begin) - begin);
}

// Returns the lines from the heading of the case table to the next blank line.
std::string table_in(const std::string& text) {
  const std::string from_table = text.substr(text.find("\ncase ") + 1);
  return from_table.substr(0, from_table.find("\n\n"));
}
std::string headings_in(const std::string& text) {
  return split_text(table_in(text), "\n").front();
}

TEST(Terminal, ANarrowTableKeepsWhatMattersAndNamesWhatWent) {
  for (const std::size_t width : {80, 100, 120}) {
    const std::string text = arranged({.width = width});
    EXPECT_LE(widest_line(table_in(text)), width) << text;
    EXPECT_THAT(headings_in(text), ::testing::MatchesRegex("case +.*step ms .*MFU .*change +95 % interval .*verdict"));
    for (const char* name : {"\nTP2 ", "\nPP8 ", "\noverlap_grad_reduce off "}) EXPECT_THAT(text, HasSubstr(name));
    EXPECT_THAT(text, ::testing::ContainsRegex("\nmicro_batch_size=4 .*-12.0 %  .-12.2, -11.9. % .*faster\n"));
  }
  EXPECT_THAT(arranged({.width = 80}), HasSubstr("Left out to fit: memory MiB, GFLOP/s/rank, tokens/s, ranks, "));
}

// A long name is wrapped rather than cut.
TEST(Terminal, ALongNameGoesOnInAnotherLine) {
  const store::Result result = test::samples::sweep({"micro_batch_size=4 + overlap_grad_reduce=false"}, {1, 1, 0.9});
  const std::string text = arranged(show_document(result, analysis::summarise(result)), {.width = 80});
  EXPECT_THAT(text, ::testing::ContainsRegex("\nmicro_batch_size=4 . +[0-9].* %  .*faster\noverlap_grad_reduce off\n"));
  EXPECT_LE(widest_line(table_in(text)), 80u) << text;
}

Table small_table() {
  Table table;
  table.columns = {
      case_column,   {.heading = "b", .worth = 2}, {.heading = "c", .worth = 1}, {.heading = "d", .worth = 1}, {"e"},
      verdict_column};
  table.rows = {{"baseline", "1", "1", "1", "1", ""}, {"x", "1", "1", "1", "1", "faster"}};
  return table;
}

Document with_table(Table table) {
  return with_section({"s", "", {Numbers{"", std::move(table)}}});
}

TEST(Terminal, TheColumnOfLeastWorthGoesFirstAndOfEqualsTheLeft) {
  EXPECT_EQ(left_out_of(with_table(small_table())), "c, d, b");
  EXPECT_THAT(arranged(with_table(small_table()), {.width = 26}), HasSubstr("Left out to fit: c ("));
  EXPECT_THAT(arranged(with_table(small_table()), {.width = 20}), HasSubstr("case      e  verdict\n"));
}

// Words that are too long for the terminal do not keep the other columns as long as a line of a file.
TEST(Terminal, NoColumnIsWiderThanTheTerminalBesideALongWord) {
  Table table;
  table.columns = {{"fact", true}, {"was", true}};
  table.rows = {{std::string(40, 'x'), "one two three four five six seven eight nine"}};
  EXPECT_THAT(arranged(with_table(std::move(table)), {.width = 40}), HasSubstr(" four five six seven eight\n"));
}

// Columns are left out in this order, over all tables of cases.
TEST(Terminal, WhatGoesFirst) {
  EXPECT_EQ(left_out_of(everything()),
            "memory MiB, GFLOP/s/rank, tokens/s, ranks, rounds, efficiency, speed-up, MFU, step ms, 95 % interval");
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
  EXPECT_THAT(table_in(text), Not(HasSubstr("gemm=")));
  EXPECT_THAT(text, HasSubstr("Left out to fit: in the step, "));
}

TEST(Terminal, ColumnsAreAskedForWithoutUnits) {
  const std::string text = arranged({.columns = {"step", "interval", "verdict"}});
  EXPECT_THAT(headings_in(text), ::testing::MatchesRegex("case +step ms +95 % interval +verdict"));
  // A requested column stays, however narrow the terminal.
  const std::string narrow = arranged({.width = 20, .columns = {"step", "interval", "verdict"}});
  EXPECT_THAT(headings_in(narrow), ::testing::MatchesRegex("case +step ms +95 % interval +verdict"));
  EXPECT_THAT(narrow, Not(HasSubstr("Left out to fit")));
  EXPECT_THAT(test::error_of([] { arranged({.columns = {"stepp"}}); }),
              HasSubstr("--columns 'stepp': there is no such column; allowed: case, "));
}

// `show --follow --columns …` may start before the first block has ended.
TEST(Terminal, ColumnsThatComeLaterMayBeAskedFor) {
  store::Result starting = test::samples::sweep({"micro_batch_size=2"}, {1, 1, 0.9});
  for (store::ResultBlock& block : starting.blocks) block.status = store::BlockStatus::pending;
  for (auto& steps : starting.step_seconds) steps.clear();
  for (auto& losses : starting.losses) losses.clear();
  starting.state = store::RunState::running;
  for (const char* column : {"step", "change", "interval", "verdict", "tokens/s", "MFU", "busbw", "memory", "p95"}) {
    Document document = show_document(starting, analysis::summarise(starting));
    EXPECT_NO_THROW(arrange(document, {.columns = {column, "verdict"}})) << column;
    EXPECT_THAT(write_text(document), HasSubstr("baseline"));
  }
  Document document = show_document(starting, analysis::summarise(starting));
  EXPECT_THROW(arrange(document, {.columns = {"stepp"}}), Error);
}

TEST(Terminal, ColoursAreThoseOfVerdictsAndOfNothingElse) {
  const std::string plain = arranged({}), text = arranged({}, true);
  EXPECT_THAT(text, HasSubstr("\x1b[32mfaster\x1b[0m\n"));
  EXPECT_THAT(text, HasSubstr("\x1b[31mslower\x1b[0m\n"));
  EXPECT_THAT(text, HasSubstr("\x1b[31mfailed [2]\x1b[0m\n"));
  EXPECT_THAT(text, HasSubstr("  (baseline)\n"));
  EXPECT_THAT(text, ::testing::ContainsRegex("  ~[0-9]+  .\\[33munresolved.\\[0m\n"));
  std::string stripped = text;
  for (const char* code : {"\x1b[31m", "\x1b[32m", "\x1b[33m", "\x1b[0m"}) stripped = replaced_all(stripped, code, "");
  EXPECT_EQ(stripped, plain);
}

// All tables of a full breakdown, at several widths: no line is too long.
TEST(Narrow, ABreakdownFitsEightyColumns) {
  store::Result result = test::samples::everything();
  test::samples::add_profiled_steps(result);
  const analysis::Findings findings = analysis::find_all(result);
  for (const std::size_t width : {72U, 80U, 100U, 140U}) {
    Document document = breakdown_document(result, findings, {.cases = {"precision=bf16"}});
    arrange(document, {.width = width});
    const std::string text = write_text(document, width);
    EXPECT_LE(widest_line(text), width) << text;
  }
}

}  // namespace
}  // namespace harness::report
