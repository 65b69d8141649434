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

const char* color_of(Tone tone) {
  static constexpr std::array colors{"", "\x1b[32m", "\x1b[31m", "\x1b[33m"};
  return colors[static_cast<std::size_t>(tone)];
}

std::string padded(const std::string& text, std::size_t width, bool left, const std::string& color) {
  const std::string fill(width - std::min(width, columns_of(text)), ' ');
  const std::string shown = color.empty() || text.empty() ? text : color + text + "\x1b[0m";
  return left ? shown + fill : fill + shown;
}

void end_line(std::string& out) {
  while (!out.empty() && out.back() == ' ') out.pop_back();
  out += '\n';
}

constexpr std::size_t gap = 2;             // between two columns
constexpr std::size_t shortest_name = 24;  // the first column is not broken below this width

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
  const std::vector<std::size_t> whole = table.widths();
  std::vector<std::size_t> widths = whole, least = whole;
  std::size_t sum = gap * (count - 1);
  for (std::size_t c = 0; c < count; ++c) {
    sum += widths[c];
    if (!table.columns[c].words) continue;
    least[c] = std::max(columns_of(table.columns[c].heading), c == 0 ? std::min(shortest_name, widths[c]) : 0);
    for (const auto& row : table.rows) least[c] = std::max(least[c], longest_word(row[c].text));
  }
  for (; sum > width; --sum) {
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
    const std::size_t first = out.rows.size();
    for (std::size_t c = 0; c < row.size(); ++c) {
      const auto lines = lines_of(row[c].text, widths[c]);
      if (first + lines.size() > out.rows.size()) out.rows.resize(first + lines.size());
      for (std::size_t i = 0; i < lines.size(); ++i) {
        out.rows[first + i].resize(row.size());
        out.rows[first + i][c] = {lines[i], row[c].tone};
      }
    }
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

// Leaves a table that has none of the wanted columns as it is.
void select_columns(Table& table, const std::vector<std::string>& wanted) {
  const auto is_wanted = [&](const Table::Column& column) {
    return std::ranges::any_of(wanted, [&](const std::string& name) { return is_called(column.heading, name); });
  };
  if (std::ranges::none_of(table.columns, is_wanted)) return;
  for (std::size_t c = table.columns.size(); c-- > 1;) {
    if (!is_wanted(table.columns[c])) table.remove_column(c);
  }
}

// Removes the column of least worth if that is below `below` and adds its heading to `dropped`. Returns whether it did.
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

void fit(Table& table, const TableView& view) {
  const bool selects = has_selection(table), keeps_columns = selects && !view.columns.empty();
  if (selects) select_columns(table, view.columns);
  if (view.width == 0 || table.width() <= view.width) return;
  put_brief_texts_in(table);
  std::vector<std::string> dropped;
  while (!keeps_columns && table.width() > view.width && drop_column(table, essential, dropped)) {
  }
  Table wrapped_table = with_lines(table, widths_within(table, view.width));
  while (wrapped_table.width() > view.width && !keeps_columns && drop_column(table, Table::Column::stays, dropped))
    wrapped_table = with_lines(table, widths_within(table, view.width));
  table = std::move(wrapped_table);
  if (!dropped.empty())
    table.left_out = fmt::format("Left out to fit: {}{}.", join(dropped, ", "), selects ? " (--columns)" : "");
}

}  // namespace

std::vector<std::size_t> Table::widths() const {
  std::vector<std::size_t> widths;
  for (const auto& column : columns) widths.push_back(columns_of(column.heading));
  for (const auto& row : rows) {
    for (std::size_t c = 0; c < row.size(); ++c) widths[c] = std::max(widths[c], columns_of(one_line(row[c].text)));
  }
  return widths;
}

std::size_t Table::width() const {
  const std::vector<std::size_t> each = widths();
  return std::accumulate(each.begin(), each.end(), std::size_t{0}) + 2 * (std::max<std::size_t>(1, each.size()) - 1);
}

void Table::remove_column(std::size_t column) {
  const auto offset = static_cast<std::ptrdiff_t>(column);
  columns.erase(columns.begin() + offset);
  for (auto& row : rows) row.erase(row.begin() + offset);
}

void Table::remove_empty_columns() {
  for (std::size_t c = columns.size(); c-- > 1;) {
    if (std::ranges::all_of(rows, [&](const auto& row) { return row[c].text.empty(); })) remove_column(c);
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
  notes.push_back(text);
  return fmt::format("[{}]", notes.size());
}

std::string Table::text(bool colored) const {
  const std::vector<std::size_t> each = widths();
  std::string out;
  const auto line = [&](const auto& cell) {
    for (std::size_t c = 0; c < columns.size(); ++c) {
      const auto [text, color] = cell(c);
      if (c > 0) out += "  ";
      out += padded(text, each[c], columns[c].words, color);
    }
    end_line(out);
  };
  line([&](std::size_t c) { return std::pair(columns[c].heading, ""); });
  for (const auto& row : rows) {
    line([&](std::size_t c) { return std::pair(one_line(row[c].text), colored ? color_of(row[c].tone) : ""); });
  }
  return out;
}

void arrange(Document& document, const TableView& view) {
  check_columns(document, view.columns);
  for (Section& section : document.sections) {
    for (Piece& piece : section.pieces) {
      if (auto* numbers = std::get_if<Numbers>(&piece)) fit(numbers->table, view);
    }
  }
}

}  // namespace harness::report
