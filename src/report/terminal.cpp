#include "report/document.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <optional>
#include <string_view>
#include <utility>

#include "base/error.h"
#include "base/text.h"
#include "report/metrics.h"
#include "report/sections.h"
#include "report/words.h"
#include "store/result.h"

namespace harness::report {
namespace {

using Id = Table::Column::Id;

// "step ms" is asked for as "step", "95 % interval" as "interval", "A step ms" as "step".
bool is_called(const std::string& heading, std::string_view name) {
  const std::string words = " " + lower(heading) + " ", wanted = " " + lower(name) + " ";
  return words.find(wanted) != std::string::npos || lower(heading).starts_with(lower(name) + "/");
}

bool is_case_table(const Table& table) {
  return table.columns.size() > 1 && table.columns.front().id == Id::name;
}

std::optional<std::size_t> find_column(const Table& table, Id id) {
  const auto found = std::ranges::find(table.columns, id, &Table::Column::id);
  if (found == table.columns.end()) return std::nullopt;
  return found - table.columns.begin();
}

// All columns that a table of cases may have: a sweep that has just begun has hardly any of it, and whoever follows it
// has asked for columns that come.
std::vector<std::string> all_headings() {
  constexpr double usual_confidence = 0.95;  // people name the column by its word: interval
  std::vector<std::string> headings{
      "case", "ranks",     change_column().heading, interval_heading(usual_confidence), "rounds", "verdict",
      "n",    uses_heading};
  for (const Metric& metric : case_metrics()) {
    for (const Metric::Column& column : {metric.column, metric.column_of_operations})
      headings.push_back(replaced(column.heading, {{'{', ""}, {'}', ""}}));
  }
  return headings;
}

// Whether its columns can be asked for.
bool has_selection(const Table& table) {
  return is_case_table(table) || (!table.columns.empty() && table.columns.front().id == Id::size);
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

void sort_rows(Table& table, const std::string& order) {
  const auto is_change = [](const auto& row) {
    const std::string& name = row.front().text;
    return name != store::baseline_name && !store::is_control(name);
  };
  const auto changes = std::stable_partition(table.rows.begin(), table.rows.end(), std::not_fn(is_change));
  const auto column = find_column(table, Id::change);
  if (order == "name") {
    std::ranges::stable_sort(changes, table.rows.end(), {}, [](const auto& row) { return row.front().text; });
  } else if (order == "change" && column) {
    std::ranges::stable_sort(changes, table.rows.end(), {}, [&](const auto& row) { return row[*column].key; });
  }
}

// "memory MiB" is "memory": as --columns takes it.
std::string without_unit(const Table::Column& column) {
  const bool has_unit = column.worth != Table::Column::stays && !column.words;
  static const std::vector<std::string> units{"s", "ms", "us", "GiB", "MiB", "KiB", "GB/s", "MHz"};
  const std::size_t space = column.heading.rfind(' ');
  if (!has_unit || space == std::string::npos) return column.heading;
  const bool known = std::ranges::find(units, column.heading.substr(space + 1)) != units.end();
  return known ? column.heading.substr(0, space) : column.heading;
}

// Returns whether a column went, whose heading is then added to `dropped`.
bool drop_column(Table& table, int below, std::vector<std::string>& dropped) {
  const auto least = std::ranges::min_element(table.columns, {}, &Table::Column::worth);
  if (least->worth >= below) return false;
  dropped.push_back(without_unit(*least));
  table.remove_column(least - table.columns.begin());
  return true;
}

// Whether the first cell says what the column would.
bool names_itself(const std::vector<Cell>& row, std::size_t column) {
  return row[column].text.empty() || row[column].text == row.front().text;
}

// Puts the brief texts in. Returns whether a case is then called by its use.
bool shorten(Table& table) {
  const auto uses = find_column(table, Id::use);
  bool named_by_use = false;
  for (auto& row : table.rows) {
    named_by_use |= uses && !row.front().brief.empty() && row.front().brief == row[*uses].text;
    for (Cell& cell : row) {
      if (!cell.brief.empty()) cell.text = std::exchange(cell.brief, "");
    }
  }
  if (uses && std::ranges::all_of(table.rows, [&](const auto& row) { return names_itself(row, *uses); }))
    table.remove_column(*uses);
  return named_by_use;
}

// Notes below the table.
std::vector<std::string> fit(Table& table, std::size_t width, bool keeps_columns) {
  std::vector<std::string> remarks, dropped;
  if (width == 0 || table.width() <= width) return remarks;
  if (shorten(table)) {
    remarks.emplace_back(
        "Named by what they are in the model's step. A wider terminal, --format md and csv show their sizes.");
  }
  if (!keeps_columns) {
    while (table.width() > width && drop_column(table, essential, dropped)) {
    }
  }
  auto wrapped = wrapped_within(table, width);
  while (!wrapped && !keeps_columns && drop_column(table, Table::Column::stays, dropped))
    wrapped = wrapped_within(table, width);
  if (wrapped) table = std::move(*wrapped);
  if (!dropped.empty()) remarks.push_back(fmt::format("Left out to fit: {} (--columns).", join(dropped, ", ")));
  return remarks;
}

}  // namespace

void arrange(Document& document, const TableView& view) {
  check_columns(document, view.columns);
  for (Section& section : document.sections) {
    std::vector<Piece> pieces;
    for (Piece& piece : section.pieces) {
      auto* numbers = std::get_if<Numbers>(&piece);
      if (numbers == nullptr) {
        pieces.push_back(std::move(piece));
      } else if (is_case_table(numbers->table)) {
        if (view.sort != "order") sort_rows(numbers->table, view.sort);
        select_columns(numbers->table, view.columns);
        const auto remarks = fit(numbers->table, view.width, !view.columns.empty());
        pieces.push_back(std::move(piece));
        if (!remarks.empty()) pieces.emplace_back(List{remarks, List::Mark::none});
      } else {
        if (has_selection(numbers->table)) select_columns(numbers->table, view.columns);
        std::string caption = std::move(numbers->caption);
        for (Table& table : narrowed(numbers->table, view.width == 0 ? numbers->table.width() : view.width)) {
          pieces.emplace_back(Numbers{std::exchange(caption, ""), std::move(table), numbers->folded});
        }
      }
    }
    section.pieces = std::move(pieces);
  }
}

}  // namespace harness::report
