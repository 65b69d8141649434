// The three writers over one document: what they share, and that no text of a file becomes markup or moves a cursor.
#include "report/document.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "report/page/page.h"

namespace harness::report {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

Document with(std::vector<Piece> pieces) {
  Document document;
  document.headline = "What moved.";
  document.sections.push_back({"s", "A section", std::move(pieces)});
  return document;
}

Table two_by_two() {
  Table table;
  table.columns = {{"case", true}, {"ms"}};
  table.rows = {{"baseline", "1.5"}, {"a=1", "10.25"}};
  return table;
}

TEST(WriteText, SetsTablesApartAndKeepsParagraphsTogether) {
  EXPECT_EQ(write_text(with({Paragraph{"First."}, List{{"a", "b"}}, Numbers{"Times:", two_by_two()},
                             List{{"note"}, List::Mark::number}, List{{"careful"}, List::Mark::warning}})),
            "What moved.\n"
            "\n"
            "A section\n"
            "\n"
            "First.\n"
            "- a\n"
            "- b\n"
            "\n"
            "Times:\n"
            "case         ms\n"
            "baseline    1.5\n"
            "a=1       10.25\n"
            "\n"
            "[1] note\n"
            "! careful\n");
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
  table.columns = {{"case", true}};
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

}  // namespace
}  // namespace harness::report
