#include "report/table.h"

#include <algorithm>
#include <sstream>

namespace harness {
namespace {

// Columns on a terminal: UTF-8 characters, none of which is wide here.
std::size_t width_of(const std::string& text) {
  return static_cast<std::size_t>(
      std::count_if(text.begin(), text.end(), [](char c) { return (static_cast<unsigned char>(c) & 0xC0) != 0x80; }));
}

std::string padded(const std::string& text, std::size_t width, bool left) {
  const std::string fill(width - std::min(width, width_of(text)), ' ');
  return left ? text + fill : fill + text;
}

void end_line(std::string& out) {
  while (!out.empty() && out.back() == ' ') out.pop_back();
  out += '\n';
}

}  // namespace

std::string Table::text() const {
  std::vector<std::size_t> widths;
  for (const auto& column : columns) widths.push_back(width_of(column.heading));
  for (const auto& row : rows) {
    for (std::size_t c = 0; c < row.size(); ++c) widths[c] = std::max(widths[c], width_of(row[c]));
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
  for (const auto& row : rows) line([&](std::size_t c) { return row[c]; });
  return out;
}

std::string Table::markdown() const {
  std::string out;
  const auto cell = [](const std::string& text) {
    std::string safe;
    for (const char c : text) {
      if (c == '|') safe += '\\';
      safe += c;
    }
    return safe;
  };
  for (const auto& column : columns) out += "| " + cell(column.heading) + " ";
  out += "|\n";
  for (const auto& column : columns) out += column.words ? "|:---" : "|---:";
  out += "|\n";
  for (const auto& row : rows) {
    for (const auto& text : row) out += "| " + cell(text) + " ";
    out += "|\n";
  }
  return out;
}

std::string one_line(const std::string& text) {
  std::string out = text;
  for (char& c : out) {
    if (static_cast<unsigned char>(c) < 0x20 || c == 0x7f) c = ' ';
  }
  return out;
}

std::string wrapped(const std::string& paragraph, std::size_t width, std::size_t indent) {
  std::istringstream words(one_line(paragraph));
  std::string out, line;
  for (std::string word; words >> word;) {
    if (!line.empty() && width_of(line) + 1 + width_of(word) > width) {
      out += line + '\n';
      line = std::string(indent, ' ') + word;
    } else {
      line += (line.empty() ? "" : " ") + word;
    }
  }
  return out + line + '\n';
}

}  // namespace harness
