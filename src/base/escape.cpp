#include "base/escape.h"

#include <fmt/format.h>

#include <cstdint>

#include "base/utf8.h"

namespace harness {
namespace {

// As YAML has it. JSON, whose strings have no C0 as it is, means the same by it.
std::string notation_of(std::uint32_t code) {
  return code < 0x20 ? fmt::format("\\x{:02x}", code) : fmt::format("\\u{:04x}", code);
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
    } else if (is_unprintable(c.code) && kept.find(character) == std::string_view::npos) {
      out += notation_of(c.code);
    } else {
      out += character;
    }
  }
  return out;
}

}  // namespace

bool is_unprintable(std::uint32_t c) {
  return c < 0x20 || (c >= 0x7f && c < 0xa0) || c == 0x061c || (c >= 0x200b && c <= 0x200f) ||
         (c >= 0x2028 && c <= 0x202e) || (c >= 0x2060 && c <= 0x206f) || c == 0xfeff || c == 0xfffe || c == 0xffff;
}

std::string escaped(std::string_view text) {
  return escaped_but(text, "");
}

std::string escaped_lines(std::string_view text) {
  return escaped_but(text, "\n\t");
}

}  // namespace harness
