#pragma once

#include <string>
#include <vector>

#include "report/clean_text.h"

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
};

}  // namespace harness::report
