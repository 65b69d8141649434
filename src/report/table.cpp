#include <algorithm>
#include <array>
#include <cstddef>
#include <numeric>
#include <sstream>
#include <utility>

#include "report/document.h"

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
constexpr std::size_t shortest_name = 24;  // of what a row is about: not broken below that

std::size_t longest_word(const std::string& text) {
  std::istringstream words(one_line(text));
  std::size_t longest = 0;
  for (std::string word; words >> word;) longest = std::max(longest, columns_of(word));
  return longest;
}

// Widths of all columns so that the sum fits, by taking from the widest column of words; empty if that cannot be.
std::vector<std::size_t> widths_within(const Table& table, std::size_t width) {
  const std::size_t count = table.columns.size();
  std::vector<std::size_t> widths = table.widths(), least = widths;
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
    if (widest == count) return {};
    --widths[widest];
  }
  return widths;
}

std::vector<std::string> lines_of(const std::string& cell, std::size_t width) {
  std::vector<std::string> lines;
  if (columns_of(one_line(cell)) <= width) return {cell};
  std::istringstream text(wrapped(cell, width, 0));
  for (std::string line; std::getline(text, line);) lines.push_back(line);
  return lines;
}

// A row becomes as many as its tallest cell has lines.
Table with_lines(const Table& table, const std::vector<std::size_t>& widths) {
  Table out{table.columns, {}};
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
  return legends;
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

std::optional<Table> wrapped_within(const Table& table, std::size_t width) {
  if (table.columns.empty()) return std::nullopt;
  const std::vector<std::size_t> widths = widths_within(table, width);
  return widths.empty() ? std::nullopt : std::optional(with_lines(table, widths));
}

}  // namespace harness::report
