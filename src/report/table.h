#pragma once

#include <cstddef>
#include <string>
#include <vector>

namespace harness::report {

/// Cells with headings. Columns of words are left-aligned, columns of numbers right-aligned.
struct Table {
  struct Column {
    std::string heading;
    bool words = false;
  };
  std::vector<Column> columns;
  std::vector<std::vector<std::string>> rows;

  /// Aligned with two spaces between; no trailing spaces.
  std::string text() const;
  /// Of the columns of text(), and of all of it.
  std::vector<std::size_t> widths() const;
  std::size_t width() const;
};

}  // namespace harness::report
