#include "base/utf8.h"

#include <algorithm>
#include <array>

namespace harness {

Character character_at(std::string_view text, std::size_t at) {
  const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(text[at + i]); };
  const unsigned char lead = byte(0);
  if (lead < 0x80) return {lead, 1};
  std::size_t bytes = 2;
  if (lead >= 0xe0) bytes = 3;
  if (lead >= 0xf0) bytes = 4;
  if (lead < 0xc2 || lead > 0xf4 || at + bytes > text.size()) return {};
  std::uint32_t code = lead & (0xffu >> (bytes + 1));
  for (std::size_t i = 1; i < bytes; ++i) {
    if (!continues_character(text[at + i])) return {};
    code = code << 6 | (byte(i) & 0x3fu);
  }
  constexpr std::array<std::uint32_t, 5> least{0, 0, 0x80, 0x800, 0x10000};
  if (code < least[bytes] || code > 0x10ffff || (code >= 0xd800 && code <= 0xdfff)) return {};
  return {code, bytes};
}

std::size_t whole_characters(std::string_view text, std::size_t most) {
  std::size_t kept = std::min(most, text.size());
  while (kept > 0 && kept < text.size() && continues_character(text[kept])) --kept;
  return kept;
}

}  // namespace harness
