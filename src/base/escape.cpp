#include "base/escape.h"

#include <fmt/format.h>

#include <cstdint>

#include "base/utf8.h"

namespace harness {
namespace {

bool is_control(std::uint32_t code) {
  return code < 0x20 || (code >= 0x7f && code < 0xa0);
}

// Marks, embeddings, overrides and isolates of direction; line and paragraph separators.
bool changes_direction(std::uint32_t code) {
  return code == 0x061c || code == 0x200e || code == 0x200f || (code >= 0x2028 && code <= 0x202e) ||
         (code >= 0x2066 && code <= 0x2069);
}

std::string escaped_but(std::string_view text, std::string_view kept) {
  std::string out;
  out.reserve(text.size());
  while (!text.empty()) {
    const Character c = character_at(text, 0);
    const std::size_t bytes = c.bytes == 0 ? 1 : c.bytes;
    const std::string_view character = text.substr(0, bytes);
    text.remove_prefix(bytes);
    if (c.bytes == 0) {
      out += fmt::format("\\x{:02x}", static_cast<unsigned char>(character[0]));
    } else if (changes_direction(c.code)) {
      out += fmt::format("\\u{:04x}", c.code);
    } else if (is_control(c.code) && kept.find(character) == std::string_view::npos) {
      out += fmt::format("\\x{:02x}", c.code);
    } else {
      out += character;
    }
  }
  return out;
}

}  // namespace

std::string escaped(std::string_view text) {
  return escaped_but(text, "");
}

std::string escaped_lines(std::string_view text) {
  return escaped_but(text, "\n\t");
}

}  // namespace harness
