#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "report/document.h"

namespace harness::report {

/// How a person wants to see the table of cases.
struct TableView {
  std::size_t width = 0;                  // columns of the terminal; 0: no limit
  std::vector<std::string> columns = {};  // which ones, by their headings without units ("step", "change"); empty: all
  std::string sort = "order";  // order (of the file), name or change; the baseline and its control stay on top
};

/// Arranges the tables of the document. One of cases (its first column is Id::name, its last Id::verdict) that is wider
/// than the view gets short names of cases first (TP2 for a layout in full, "qkv, forward" for a
/// product's sizes), explained below; then the columns of least worth go, and a line names them. All others keep
/// everything (narrowed()). Throws Error for a column that no table of cases has.
void arrange(Document& document, const TableView& view);

}  // namespace harness::report
