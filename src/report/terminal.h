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

/// Arranges the tables of the document. One of cases (its first column is Id::name) that is wider than the view gets
/// the brief texts of its cells first (TP2 for a layout, "qkv, forward" for a product's sizes); then columns that are
/// not essential go, least worth first, and a line names them; then words go on in further lines; then the other
/// columns go. All other tables are narrowed(); one of sizes (Id::size) keeps only columns that were asked for, if any
/// were. Throws Error for a column that no table of cases has, nor the table of sizes.
void arrange(Document& document, const TableView& view);

}  // namespace harness::report
