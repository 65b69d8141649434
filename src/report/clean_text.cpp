#include "report/clean_text.h"

#include <cstdint>
#include <sstream>

namespace harness::report {
namespace {

struct Character {
  std::uint32_t code = 0;
  std::size_t length = 0;  // bytes; 0: not UTF-8
};

// Shortest form only, no surrogates, nothing beyond U+10FFFF (RFC 3629).
Character character_at(std::string_view text, std::size_t at) {
  const auto byte = [&](std::size_t i) { return static_cast<std::uint8_t>(text[at + i]); };
  const std::uint8_t first = byte(0);
  if (first < 0x80) return {first, 1};
  std::size_t length = 2;
  if (first >= 0xE0) length = 3;
  if (first >= 0xF0) length = 4;
  if (first < 0xC2 || first > 0xF4 || at + length > text.size()) return {};
  std::uint32_t code = first & (0xFFu >> (length + 1));
  for (std::size_t i = 1; i < length; ++i) {
    if ((byte(i) & 0xC0) != 0x80) return {};
    code = code << 6 | (byte(i) & 0x3Fu);
  }
  constexpr std::uint32_t smallest[] = {0, 0, 0x80, 0x800, 0x10000};
  if (code < smallest[length] || code > 0x10FFFF || (code >= 0xD800 && code <= 0xDFFF)) return {};
  return {code, length};
}

// C0 and C1 controls, marks and overrides of writing direction, line and paragraph separators, byte order marks, and
// what is no character at all (which XML forbids).
bool unwanted(std::uint32_t c) {
  return c < 0x20 || (c >= 0x7F && c < 0xA0) || c == 0x061C || (c >= 0x200B && c <= 0x200F) ||
         (c >= 0x2028 && c <= 0x202E) || (c >= 0x2060 && c <= 0x206F) || c == 0xFEFF || (c & 0xFFFE) == 0xFFFE;
}

// Every character that is wanted, through `keep`; what is not UTF-8 as `broken`.
template <class Keep>
std::string filtered(std::string_view text, std::string_view broken, Keep keep) {
  std::string out;
  out.reserve(text.size());
  for (std::size_t i = 0; i < text.size();) {
    const Character c = character_at(text, i);
    if (c.length == 0) {
      out += broken;
      ++i;
      continue;
    }
    out += keep(c.code, text.substr(i, c.length));
    i += c.length;
  }
  return out;
}

}  // namespace

std::size_t columns_of(std::string_view text) {
  std::size_t columns = 0;
  for (const char c : text) {
    const bool goes_on = (static_cast<unsigned char>(c) & 0xC0) == 0x80;
    if (!goes_on) ++columns;
  }
  return columns;
}

std::string one_line(std::string_view text) {
  return filtered(text, "?", [](std::uint32_t code, std::string_view character) {
    return unwanted(code) ? std::string_view(" ") : character;
  });
}

std::string cleaned(std::string_view text) {
  return filtered(text, "\uFFFD", [](std::uint32_t code, std::string_view character) {
    const bool layout = code == '\n' || code == '\t';
    return unwanted(code) && !layout ? std::string_view() : character;
  });
}

std::string escaped_markup(std::string_view text) {
  std::string out;
  for (const char c : cleaned(text)) {
    switch (c) {
      case '&':
        out += "&amp;";
        break;
      case '<':
        out += "&lt;";
        break;
      case '>':
        out += "&gt;";
        break;
      case '"':
        out += "&quot;";
        break;
      case '\'':
        out += "&#39;";
        break;
      default:
        out += c;
    }
  }
  return out;
}

std::string inline_markdown(std::string_view text) {
  std::string out;
  for (const char c : cleaned(text)) {
    if (c == '\n' || c == '\t') {
      out += ' ';
    } else if (c == '<') {
      out += "&lt;";
    } else if (c == '&') {
      out += "&amp;";
    } else {
      if (c == '\\' || c == '`' || c == '[' || c == ']' || c == '*' || c == '|') out += '\\';
      out += c;
    }
  }
  return out;
}

std::string wrapped(std::string_view paragraph, std::size_t width, std::size_t indent) {
  std::istringstream words(one_line(paragraph));
  std::string out, line;
  for (std::string word; words >> word;) {
    if (words >> std::ws && words.peek() == '%') {  // a number and its sign stay together
      std::string sign;
      words >> sign;
      word += " " + sign;
    }
    if (!line.empty() && columns_of(line) + 1 + columns_of(word) > width) {
      out += line + '\n';
      line = std::string(indent, ' ') + word;
    } else {
      line += (line.empty() ? "" : " ") + word;
    }
  }
  return out + line + '\n';
}

}  // namespace harness::report
