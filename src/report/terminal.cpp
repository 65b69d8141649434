#include "report/terminal.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <map>
#include <optional>
#include <string_view>
#include <utility>

#include "base/error.h"
#include "base/text.h"
#include "report/case_label.h"
#include "report/clean_text.h"
#include "report/effect_words.h"
#include "report/metrics.h"
#include "report/sections.h"
#include "report/table.h"
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
  return table.columns.size() > 1 && table.columns.front().id == Id::name && table.columns.back().id == Id::verdict;
}

std::optional<std::size_t> find_column(const Table& table, Id id) {
  const auto found = std::ranges::find(table.columns, id, &Table::Column::id);
  if (found == table.columns.end()) return std::nullopt;
  return found - table.columns.begin();
}

// Short names for long ones, each once; the others stay.
std::map<std::string, std::string> short_names(const Table& table, std::size_t long_name) {
  constexpr std::size_t max_variable = 28;
  const auto uses = find_column(table, Id::use);
  std::map<std::string, std::string> names;
  std::map<std::string, int> used;
  for (const auto& row : table.rows) {
    const std::string& name = row.front().text;
    const bool is_long = columns_of(name) > long_name;
    std::string shorter = uses && is_long && is_of_a_size(name) ? row[*uses].text : short_layout(name);
    if (shorter.empty() && is_long) {
      const std::size_t equals = std::min(name.find('='), name.size());
      const std::string variable = name.substr(0, std::min(equals, max_variable));
      const std::string value = name.substr(std::min(equals + 1, name.size()));
      const bool says_nothing = value.empty() || value == "true" || value == "false";
      const bool plain =
          !says_nothing && columns_of(value) <= long_name && value.find_first_of("{=") == std::string::npos;
      shorter = plain ? value : fmt::format("{} #{}", variable, ++used[variable]);
    }
    const bool taken =
        std::ranges::any_of(names, [&](const auto& known) { return known.second == shorter; }) ||
        std::ranges::any_of(table.rows, [&](const auto& other) { return other.front().text == shorter; });
    if (!shorter.empty() && !taken && columns_of(shorter) < columns_of(name)) names[name] = shorter;
  }
  return names;
}

// All columns that a table of cases may have: a sweep that has just begun has hardly any of it, and whoever follows it
// has asked for columns that come.
std::vector<std::string> all_headings() {
  constexpr double usual_confidence = 0.95;  // people name the column by its word: interval
  std::vector<std::string> headings{
      "case", "ranks", change_column().heading, interval_heading(usual_confidence), "verdict", "n", uses_heading};
  for (const Metric& metric : case_metrics()) {
    for (const Metric::Column& column : {metric.column, metric.column_of_operations})
      headings.push_back(replaced(column.heading, {{'{', ""}, {'}', ""}}));
  }
  return headings;
}

void select_columns(Table& table, const std::vector<std::string>& wanted) {
  if (wanted.empty()) return;
  std::vector<std::string> headings;
  for (const Table::Column& column : table.columns) headings.push_back(column.heading);
  for (const std::string& name : wanted) {
    const auto has_the_name = [&](const std::string& heading) { return is_called(heading, name); };
    if (std::ranges::none_of(headings, has_the_name) && std::ranges::none_of(all_headings(), has_the_name))
      fail("--columns {}: there is no such column; allowed: {}", quote(name), join(headings, ", "));
  }
  for (std::size_t c = table.columns.size(); c-- > 1;) {
    const bool keep =
        std::ranges::any_of(wanted, [&](const std::string& name) { return is_called(table.columns[c].heading, name); });
    if (!keep) table.remove_column(c);
  }
}

void sort_rows(Table& table, const std::string& order) {
  const auto is_change = [](const auto& row) { return store::role_of(row.front().text) == store::CaseRole::change; };
  const auto changes = std::stable_partition(table.rows.begin(), table.rows.end(), std::not_fn(is_change));
  const auto column = find_column(table, Id::change);
  if (order == "name") {
    std::ranges::stable_sort(changes, table.rows.end(), {}, [](const auto& row) { return row.front().text; });
  } else if (order == "change" && column) {
    std::ranges::stable_sort(changes, table.rows.end(), {}, [&](const auto& row) { return row[*column].key; });
  }
}

// Returns the headings that went.
std::vector<std::string> drop_columns(Table& table, std::size_t width) {
  std::vector<std::string> dropped;
  while (table.width() > width) {
    const auto least = std::ranges::min_element(table.columns, {}, &Table::Column::worth);
    if (least->worth == Table::Column::stays) break;
    dropped.push_back(least->heading);
    table.remove_column(least - table.columns.begin());
  }
  return dropped;
}

// Whether the first cell says what the column would.
bool names_itself(const std::vector<Cell>& row, std::size_t column) {
  return row[column].text.empty() || row[column].text == row.front().text;
}

// What to say below the table.
std::vector<std::string> fit(Table& table, std::size_t width, bool keeps_columns) {
  std::vector<std::string> remarks;
  if (width == 0 || table.width() <= width) return remarks;
  constexpr std::size_t long_name = 28, long_on_a_narrow_terminal = 18, narrow = 100;
  const auto names = short_names(table, width < narrow ? long_on_a_narrow_terminal : long_name);
  const auto uses = find_column(table, Id::use);
  bool named_by_use = false;
  std::vector<std::string> legend;
  for (auto& row : table.rows) {
    const auto shorter = names.find(row.front().text);
    if (shorter == names.end()) continue;
    const bool by_use = uses && row[*uses].text == shorter->second;
    named_by_use |= by_use;
    if (!by_use) legend.push_back(fmt::format("{}: {}", shorter->second, row.front().text));
    row.front().text = shorter->second;
  }
  if (!legend.empty()) remarks.push_back(join(legend, "; ") + ".");
  if (named_by_use) {
    remarks.emplace_back(
        "Named by what they are in the model's step. A wider terminal, --format md and csv show their sizes.");
  }
  if (uses && std::ranges::all_of(table.rows, [&](const auto& row) { return names_itself(row, *uses); })) {
    table.remove_column(*uses);
  }
  if (keeps_columns) return remarks;
  if (const auto dropped = drop_columns(table, width); !dropped.empty()) {
    remarks.push_back(
        fmt::format("Left out to fit {} columns: {} (--columns says which to show).", width, join(dropped, ", ")));
  }
  return remarks;
}

}  // namespace

void arrange(Document& document, const TableView& view) {
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
