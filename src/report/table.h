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

/// Without line breaks or control characters: words of a worker's standard error must not move a terminal's cursor.
std::string one_line(const std::string& text);
/// Breaks a paragraph at `width` columns; further lines are indented by `indent` spaces.
std::string wrapped(const std::string& paragraph, std::size_t width, std::size_t indent);

}  // namespace harness
