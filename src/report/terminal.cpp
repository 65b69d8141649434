#include "report/document.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <string_view>
#include <utility>

#include "base/error.h"
#include "base/text.h"
#include "report/metrics.h"
#include "report/sections.h"
#include "report/words.h"

namespace harness::report {
namespace {

using Id = Table::Column::Id;

// "step ms" is asked for as "step", "95 % interval" as "interval", "A step ms" as "step".
bool is_called(const std::string& heading, std::string_view name) {
  const std::string words = " " + lower(heading) + " ", wanted = " " + lower(name) + " ";
  return words.find(wanted) != std::string::npos || lower(heading).starts_with(lower(name) + "/");
}

// All columns that a table of cases may have: a sweep that has just begun has hardly any of it, and whoever follows it
// has asked for columns that come.
std::vector<std::string> all_headings() {
  std::vector<std::string> headings{"case", "ranks", "change", "interval", "rounds", "verdict", "n", uses_heading};
  for (const Metric& metric : case_metrics()) headings.push_back(replaced(metric.heading, {{'{', ""}, {'}', ""}}));
  return headings;
}

// Whether its columns can be asked for: those of cases and of sizes.
bool has_selection(const Table& table) {
  return table.columns.size() > 1 && (table.columns.front().id == Id::name || table.columns.front().id == Id::size);
}

// Throws Error for a column that no table of the document has.
void check_columns(const Document& document, const std::vector<std::string>& wanted) {
  std::vector<std::string> headings;
  for (const Section& section : document.sections) {
    for (const Piece& piece : section.pieces) {
      const auto* numbers = std::get_if<Numbers>(&piece);
      if (numbers == nullptr || !has_selection(numbers->table)) continue;
      for (const Table::Column& column : numbers->table.columns) {
        if (std::ranges::find(headings, column.heading) == headings.end()) headings.push_back(column.heading);
      }
    }
  }
  if (headings.empty()) return;
  for (const std::string& name : wanted) {
    const auto has_the_name = [&](const std::string& heading) { return is_called(heading, name); };
    if (std::ranges::none_of(headings, has_the_name) && std::ranges::none_of(all_headings(), has_the_name))
      fail("--columns {}: there is no such column; allowed: {}", quote(name), join(headings, ", "));
  }
}

// A table that has none of them stays whole.
void select_columns(Table& table, const std::vector<std::string>& wanted) {
  const auto is_wanted = [&](const Table::Column& column) {
    return std::ranges::any_of(wanted, [&](const std::string& name) { return is_called(column.heading, name); });
  };
  if (std::ranges::none_of(table.columns, is_wanted)) return;
  for (std::size_t c = table.columns.size(); c-- > 1;) {
    if (!is_wanted(table.columns[c])) table.remove_column(c);
  }
}

// Returns whether a column went, whose heading is then added to `dropped`.
bool drop_column(Table& table, int below, std::vector<std::string>& dropped) {
  const auto least = std::ranges::min_element(table.columns, {}, &Table::Column::worth);
  if (least->worth >= below) return false;
  dropped.push_back(least->heading);
  table.remove_column(least - table.columns.begin());
  return true;
}

void put_brief_texts_in(Table& table) {
  for (auto& row : table.rows) {
    for (Cell& cell : row) {
      if (!cell.brief.empty()) cell.text = std::exchange(cell.brief, "");
    }
  }
}

// Returns the headings of columns that went.
std::vector<std::string> fit(Table& table, std::size_t width, bool keeps_columns) {
  std::vector<std::string> dropped;
  if (width == 0 || table.width() <= width) return dropped;
  put_brief_texts_in(table);
  while (!keeps_columns && table.width() > width && drop_column(table, essential, dropped)) {
  }
  auto wrapped = wrapped_within(table, width);
  while (!wrapped && !keeps_columns && drop_column(table, Table::Column::stays, dropped))
    wrapped = wrapped_within(table, width);
  if (wrapped) table = std::move(*wrapped);
  return dropped;
}

}  // namespace

void arrange(Document& document, const TableView& view) {
  check_columns(document, view.columns);
  for (Section& section : document.sections) {
    std::vector<Piece> pieces;
    for (Piece& piece : section.pieces) {
      std::vector<std::string> dropped;
      bool selects = false;
      if (auto* numbers = std::get_if<Numbers>(&piece)) {
        selects = has_selection(numbers->table);
        if (selects) select_columns(numbers->table, view.columns);
        dropped = fit(numbers->table, view.width, selects && !view.columns.empty());
      }
      pieces.push_back(std::move(piece));
      if (!dropped.empty())
        pieces.emplace_back(
            Paragraph{fmt::format("Left out to fit: {}{}.", join(dropped, ", "), selects ? " (--columns)" : "")});
    }
    section.pieces = std::move(pieces);
  }
}

}  // namespace harness::report
