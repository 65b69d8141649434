#include "base/escape.h"

#include <fmt/format.h>

#include <cstdint>

namespace harness {
namespace {

struct Character {
  std::uint32_t code = 0;
  std::size_t bytes = 0;  // 0: not UTF-8
};

// Overlong forms count as no UTF-8: a terminal might read them.
Character character_at(std::string_view text) {
  const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(text[i]); };
  const unsigned char lead = byte(0);
  if (lead < 0x80) return {lead, 1};
  if (lead < 0xc2 || lead > 0xf4) return {};
  std::size_t bytes = 2;
  if (lead >= 0xe0) bytes = 3;
  if (lead >= 0xf0) bytes = 4;
  if (bytes > text.size()) return {};
  std::uint32_t code = lead & (0xffu >> (bytes + 1));
  for (std::size_t i = 1; i < bytes; ++i) {
    if ((byte(i) & 0xc0) != 0x80) return {};
    code = code << 6 | (byte(i) & 0x3fu);
  }
  const bool overlong = (bytes == 3 && code < 0x800) || (bytes == 4 && code < 0x10000);
  return overlong || code > 0x10ffff || (code >= 0xd800 && code <= 0xdfff) ? Character{} : Character{code, bytes};
}

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
    const Character c = character_at(text);
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
