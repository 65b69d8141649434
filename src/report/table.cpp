#include "report/table.h"

#include <algorithm>

#include "report/clean_text.h"

namespace harness::report {
namespace {

std::string padded(const std::string& text, std::size_t width, bool left) {
  const std::string fill(width - std::min(width, columns_of(text)), ' ');
  return left ? text + fill : fill + text;
}

void end_line(std::string& out) {
  while (!out.empty() && out.back() == ' ') out.pop_back();
  out += '\n';
}

}  // namespace

std::string Table::text() const {
  auto clean = rows;
  for (auto& row : clean) {
    for (auto& cell : row) cell = one_line(cell);
  }
  std::vector<std::size_t> widths;
  for (const auto& column : columns) widths.push_back(columns_of(column.heading));
  for (const auto& row : clean) {
    for (std::size_t c = 0; c < row.size(); ++c) widths[c] = std::max(widths[c], columns_of(row[c]));
  }
  std::string out;
  const auto line = [&](const auto& cell) {
    for (std::size_t c = 0; c < columns.size(); ++c) {
      if (c > 0) out += "  ";
      out += padded(cell(c), widths[c], columns[c].words);
    }
    end_line(out);
  };
  line([&](std::size_t c) { return columns[c].heading; });
  for (const auto& row : clean) line([&](std::size_t c) { return row[c]; });
  return out;
}

}  // namespace harness::report
