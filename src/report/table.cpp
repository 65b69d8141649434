#include "report/table.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "report/clean_text.h"

namespace harness::report {
namespace {

const char* color_of(Tone tone) {
  switch (tone) {
    case Tone::good:
      return "\x1b[32m";
    case Tone::bad:
      return "\x1b[31m";
    case Tone::open:
      return "\x1b[33m";
    case Tone::plain:
      break;
  }
  return "";
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

}  // namespace harness::report
