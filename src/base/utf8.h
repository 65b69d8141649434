#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace harness {

/// A character of UTF-8: in its shortest form, no surrogate, nothing beyond U+10FFFF (RFC 3629).
struct Character {
  std::uint32_t code = 0;
  std::size_t bytes = 0;  // 0: there is none, what stands there is not UTF-8
};
/// The one that begins at a place within `text`.
Character character_at(std::string_view text, std::size_t at);

/// Whether a byte goes on with a character that began before it.
constexpr bool continues_character(char byte) {
  return (static_cast<unsigned char>(byte) & 0xc0u) == 0x80u;
}
/// How many bytes of `text`, at most `most`, end with a whole character.
std::size_t whole_characters(std::string_view text, std::size_t most);

}  // namespace harness
