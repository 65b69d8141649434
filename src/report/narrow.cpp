#include "report/narrow.h"

#include <algorithm>
#include <sstream>

#include "report/clean_text.h"

namespace harness::report {
namespace {

constexpr std::size_t gap = 2;  // between two columns

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
    if (c == 0 || !table.columns[c].words) continue;
    least[c] = columns_of(table.columns[c].heading);
    for (const auto& row : table.rows) least[c] = std::max(least[c], longest_word(row[c]));
  }
  for (; sum > width; --sum) {
    std::size_t widest = 0;
    for (std::size_t c = 1; c < count; ++c) {
      if (widths[c] > least[c] && (widest == 0 || widths[c] > widths[widest])) widest = c;
    }
    if (widest == 0) return {};
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
      const auto lines = lines_of(row[c], widths[c]);
      if (first + lines.size() > out.rows.size()) out.rows.resize(first + lines.size());
      for (std::size_t i = 0; i < lines.size(); ++i) {
        out.rows[first + i].resize(row.size());
        out.rows[first + i][c] = lines[i];
      }
    }
  }
  return out;
}

Table with_columns(const Table& table, std::size_t begin, std::size_t end) {
  Table out;
  const auto take = [&](const auto& from, auto& into) {
    into.push_back(from.front());
    into.insert(into.end(), from.begin() + static_cast<std::ptrdiff_t>(begin),
                from.begin() + static_cast<std::ptrdiff_t>(end));
  };
  take(table.columns, out.columns);
  for (const auto& row : table.rows) take(row, out.rows.emplace_back());
  return out;
}

}  // namespace

std::vector<Table> narrowed(const Table& table, std::size_t width) {
  if (table.width() <= width || table.columns.size() < 2) return {table};
  if (const auto widths = widths_within(table, width); !widths.empty()) return {with_lines(table, widths)};
  if (table.columns.size() == 2) return {table};
  const std::vector<std::size_t> widths = table.widths();
  std::vector<Table> tables;
  for (std::size_t begin = 1; begin < widths.size();) {
    std::size_t end = begin, sum = widths[0];
    while (end < widths.size() && (end == begin || sum + gap + widths[end] <= width)) sum += gap + widths[end++];
    for (Table& part : narrowed(with_columns(table, begin, end), width)) tables.push_back(std::move(part));
    begin = end;
  }
  return tables;
}

}  // namespace harness::report
