#pragma once

#include <string>
#include <vector>

namespace harness {

/// Cells with headings. The first column and those marked are words (left-aligned), the others numbers.
struct Table {
  struct Column {
    std::string heading;
    bool words = false;
  };
  std::vector<Column> columns;
  std::vector<std::vector<std::string>> rows;

  /// Aligned with two spaces between; no trailing spaces.
  std::string text() const;
  /// GitHub's Markdown.
  std::string markdown() const;
};

/// Without line breaks or control characters, C1's and those that turn the direction of writing included; what is not
/// UTF-8 becomes '?'. Words of a worker's standard error must not move a terminal's cursor. Tables and paragraphs do it
/// themselves.
std::string one_line(const std::string& text);
/// The same for a line of Markdown: what could begin HTML is escaped too.
std::string markdown_line(const std::string& text);
/// Breaks a paragraph at `width` columns; further lines are indented by `indent` spaces.
std::string wrapped(const std::string& paragraph, std::size_t width, std::size_t indent);

}  // namespace harness
