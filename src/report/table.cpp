#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <numeric>
#include <sstream>

#include "base/text.h"
#include "report/document.h"
#include "report/sections.h"

namespace harness::report {
namespace {

constexpr std::array colors{"", "\x1b[32m", "\x1b[31m", "\x1b[33m"};  // in the order of Tone

std::string padded(const std::string& text, std::size_t width, bool left, const std::string& color) {
  const std::string fill(width - std::min(width, columns_of(text)), ' ');
  const std::string shown = color.empty() || text.empty() ? text : color + text + "\x1b[0m";
  return left ? shown + fill : fill + shown;
}

void remove_column(Table& table, std::size_t column) {
  const auto offset = static_cast<std::ptrdiff_t>(column);
  table.columns.erase(table.columns.begin() + offset);
  for (auto& row : table.rows) row.erase(row.begin() + offset);
}

constexpr std::size_t gap = 2;             // between two columns
constexpr std::size_t shortest_name = 24;  // the first column is not broken below this width

// The width of each column in Table::text().
std::vector<std::size_t> widths_of(const Table& table) {
  std::vector<std::size_t> widths;
  for (const auto& column : table.columns) widths.push_back(columns_of(one_line(column.heading)));
  for (const auto& row : table.rows) {
    for (std::size_t c = 0; c < row.size(); ++c) widths[c] = std::max(widths[c], columns_of(one_line(row[c].text)));
  }
  return widths;
}

std::size_t whole_width(const std::vector<std::size_t>& widths) {
  return std::accumulate(widths.begin(), widths.end(), gap * (std::max<std::size_t>(1, widths.size()) - 1));
}

std::size_t longest_word(const std::string& text) {
  std::istringstream words(one_line(text));
  std::size_t longest = 0;
  for (std::string word; words >> word;) longest = std::max(longest, columns_of(word));
  return longest;
}

// Column widths whose sum fits, taken from the widest columns of words. If that is impossible, because words are too
// long, none is wider than the table should be, except for its longest word.
std::vector<std::size_t> widths_within(const Table& table, std::size_t width) {
  const std::size_t count = table.columns.size();
  const std::vector<std::size_t> whole = widths_of(table);
  std::vector<std::size_t> widths = whole, least = whole;
  for (std::size_t c = 0; c < count; ++c) {
    if (!table.columns[c].words) continue;
    least[c] =
        std::max(columns_of(one_line(table.columns[c].heading)), c == 0 ? std::min(shortest_name, widths[c]) : 0);
    for (const auto& row : table.rows) least[c] = std::max(least[c], longest_word(row[c].text));
  }
  while (whole_width(widths) > width) {
    std::size_t widest = count;
    for (std::size_t c = 0; c < count; ++c) {
      if (widths[c] > least[c] && (widest == count || widths[c] > widths[widest])) widest = c;
    }
    if (widest == count) {
      for (std::size_t c = 0; c < count; ++c) widths[c] = std::min(whole[c], std::max(least[c], width));
      break;
    }
    --widths[widest];
  }
  return widths;
}

std::vector<std::string> lines_of(const std::string& cell, std::size_t width) {
  if (columns_of(one_line(cell)) <= width) return {cell};
  return split_text(wrapped(cell, width, 0), "\n");
}

// Splits each row into as many rows as its tallest cell has lines.
Table with_lines(const Table& table, const std::vector<std::size_t>& widths) {
  Table out = table;
  out.rows.clear();
  for (const auto& row : table.rows) {
    std::vector<std::vector<Cell>> rows;
    for (std::size_t c = 0; c < row.size(); ++c) {
      const auto lines = lines_of(row[c].text, widths[c]);
      if (lines.size() > rows.size()) rows.resize(lines.size(), std::vector<Cell>(row.size()));
      for (std::size_t i = 0; i < lines.size(); ++i) rows[i][c] = {lines[i], row[c].tone};
    }
    out.rows.insert(out.rows.end(), rows.begin(), rows.end());
  }
  return out;
}

// Whether a heading matches a requested name: "step" for "step ms" and "A step ms", "interval" for "95 % interval".
bool is_called(const std::string& heading, std::string_view name) {
  const std::string words = " " + lower(heading) + " ", wanted = " " + lower(name) + " ";
  return words.find(wanted) != std::string::npos || lower(heading).starts_with(lower(name) + "/");
}

// All columns that a table of cases may have. A sweep that has just begun has few of them, and --follow may ask for
// columns that appear later.
std::vector<std::string> all_headings() {
  std::vector<std::string> headings{"case", "ranks", "change", "interval", "rounds", "verdict", "n", uses_heading};
  for (const Metric& metric : case_metrics()) headings.push_back(replaced(metric.heading, {{'{', ""}, {'}', ""}}));
  return headings;
}

// Whether its columns can be selected: tables of cases and of sizes.
bool has_selection(const Table& table) {
  return table.columns.size() > 1 && table.columns.front().names_cases;
}

// Throws Error for a column that none of the tables has.
void check_columns(const std::vector<Table*>& tables, const std::vector<std::string>& wanted) {
  std::vector<std::string> headings, names;
  for (const Table* table : tables) {
    if (!has_selection(*table)) continue;
    for (const Table::Column& column : table->columns) {
      names.push_back(column.names());
      if (std::ranges::find(headings, column.heading) == headings.end()) headings.push_back(column.heading);
    }
  }
  if (headings.empty()) return;
  for (const std::string& name : wanted) {
    const auto has_the_name = [&](const std::string& heading) { return is_called(heading, name); };
    if (std::ranges::none_of(names, has_the_name) && std::ranges::none_of(all_headings(), has_the_name))
      fail("--columns {}: there is no such column; allowed: {}", quote(name), join(headings, ", "));
  }
}

bool is_wanted(const Table::Column& column, const std::vector<std::string>& wanted) {
  return std::ranges::any_of(wanted, [&](const std::string& name) { return is_called(column.names(), name); });
}
bool has_wanted(const Table& table, const std::vector<std::string>& wanted) {
  return has_selection(table) &&
         std::ranges::any_of(table.columns, [&](const auto& c) { return is_wanted(c, wanted); });
}

void select_columns(Table& table, const std::vector<std::string>& wanted) {
  for (std::size_t c = table.columns.size(); c-- > 1;) {
    if (!is_wanted(table.columns[c], wanted)) remove_column(table, c);
  }
}

// Removes the column of least worth if that is below `below` and adds its heading to `dropped`. Returns whether it did.
bool drop_column(Table& table, int below, std::vector<std::string>& dropped) {
  const auto least = std::ranges::min_element(table.columns, {}, &Table::Column::worth);
  if (least->worth >= below) return false;
  dropped.push_back(least->heading);
  remove_column(table, static_cast<std::size_t>(least - table.columns.begin()));
  return true;
}

void put_brief_texts_in(Table& table) {
  for (auto& row : table.rows) {
    for (Cell& cell : row) {
      if (!cell.brief.empty()) cell.text = std::exchange(cell.brief, "");
    }
  }
}

void fit(Table& table, const TableView& view) {
  const bool selects = has_selection(table), keeps_columns = has_wanted(table, view.columns);
  if (keeps_columns) select_columns(table, view.columns);
  const auto is_too_wide = [&](const Table& shown) { return whole_width(widths_of(shown)) > view.width; };
  if (view.width == 0 || !is_too_wide(table)) return;
  put_brief_texts_in(table);
  std::vector<std::string> dropped;
  while (!keeps_columns && is_too_wide(table) && drop_column(table, essential, dropped)) {
  }
  Table wrapped_table = with_lines(table, widths_within(table, view.width));
  while (is_too_wide(wrapped_table) && !keeps_columns && drop_column(table, Table::Column::stays, dropped))
    wrapped_table = with_lines(table, widths_within(table, view.width));
  table = std::move(wrapped_table);
  if (!dropped.empty())
    table.left_out += fmt::format("Left out to fit: {}{}.", join(dropped, ", "), selects ? " (--columns)" : "");
}

}  // namespace

void Table::remove_empty_columns() {
  for (std::size_t c = columns.size(); c-- > 1;) {
    if (std::ranges::all_of(rows, [&](const auto& row) { return row[c].text.empty(); })) remove_column(*this, c);
  }
}

std::vector<std::string> Table::legends() const {
  std::vector<std::string> legends;
  for (const Column& column : columns) {
    if (!column.legend.empty()) legends.push_back(column.legend);
  }
  if (!left_out.empty()) legends.push_back(left_out);
  return legends;
}

std::string Table::note(const std::string& text) {
  const auto known = std::ranges::find(notes, text) - notes.begin();
  if (known == std::ssize(notes)) notes.push_back(text);
  return fmt::format("[{}]", known + 1);
}

std::string Table::text(bool colored) const {
  const std::vector<std::size_t> widths = widths_of(*this);
  std::vector<Cell> headings;
  for (const Column& column : columns) headings.emplace_back(column.heading);
  std::string out;
  const auto add_line = [&](const std::vector<Cell>& cells) {
    for (std::size_t c = 0; c < columns.size(); ++c) {
      if (c > 0) out += "  ";
      out += padded(one_line(cells[c].text), widths[c], columns[c].words,
                    colored ? colors[static_cast<std::size_t>(cells[c].tone)] : "");
    }
    while (out.ends_with(' ')) out.pop_back();
    out += '\n';
  };
  add_line(headings);
  for (const auto& row : rows) add_line(row);
  return out;
}

void arrange(Document& document, const TableView& view) {
  std::vector<Table*> tables;
  for (Section& section : document.sections) {
    for (Piece& piece : section.pieces) {
      if (auto* numbers = std::get_if<Numbers>(&piece)) tables.push_back(&numbers->table);
    }
  }
  check_columns(tables, view.columns);
  const bool none = std::ranges::none_of(tables, [&](const Table* table) { return has_wanted(*table, view.columns); });
  for (Table* table : tables) {
    if (none && has_selection(*table) && !view.columns.empty())
      table->left_out = fmt::format("--columns {}: not in this table. ", join(view.columns, ","));
    fit(*table, view);
  }
}

}  // namespace harness::report
