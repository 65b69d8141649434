#include "report/table.h"

#include <algorithm>
#include <sstream>
#include <string_view>

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

// Of the UTF-8 character that begins there; 0 if none does.
std::size_t character_length(const std::string& text, std::size_t at) {
  const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(text[i]); };
  const unsigned char first = byte(at);
  const std::size_t length = first < 0x80   ? 1
                             : first < 0xC2 ? 0
                             : first < 0xE0 ? 2
                             : first < 0xF0 ? 3
                             : first < 0xF5 ? 4
                                            : 0;
  if (length == 0 || at + length > text.size()) return 0;
  for (std::size_t i = 1; i < length; ++i) {
    if ((byte(at + i) & 0xC0) != 0x80) return 0;
  }
  return length;
}

// C0 and C1 (some terminals obey U+009B as they do ESC [), and what turns the direction of writing.
bool commands_terminal(std::string_view character) {
  const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(character[i]); };
  if (character.size() == 1) return byte(0) < 0x20 || byte(0) == 0x7f;
  if (character.size() == 2) return byte(0) == 0xC2 && byte(1) < 0xA0;
  if (character.size() != 3 || byte(0) != 0xE2) return false;
  return (byte(1) == 0x80 && byte(2) >= 0xA8 && byte(2) <= 0xAE) ||
         (byte(1) == 0x81 && byte(2) >= 0xA6 && byte(2) <= 0xA9);
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
  for (const auto& column : columns) widths.push_back(width_of(column.heading));
  for (const auto& row : clean) {
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
  for (const auto& row : clean) line([&](std::size_t c) { return row[c]; });
  return out;
}

std::string Table::markdown() const {
  std::string out;
  const auto cell = [](const std::string& text) {
    std::string safe;
    for (const char c : markdown_line(text)) {
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
  std::string out;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t length = character_length(text, at);
    if (length == 0) {
      out += '?';
      ++at;
      continue;
    }
    const std::string_view character(text.data() + at, length);
    if (commands_terminal(character)) {
      out += ' ';
    } else {
      out += character;
    }
    at += length;
  }
  return out;
}

std::string markdown_line(const std::string& text) {
  std::string out;
  for (const char c : one_line(text)) {
    if (c == '<') {
      out += "&lt;";
    } else {
      out += c;
    }
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
