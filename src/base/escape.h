#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace harness {

/// Whether a character is no part of a text for people: controls (C0, DEL and C1), marks that turn the direction of
/// writing or take no room, line and paragraph separators, byte order marks, and codes that XML forbids.
bool is_unprintable(std::uint32_t code);

/// `text` for a terminal, whoever wrote it: C0 controls and bytes that are not UTF-8 come as \xNN, other unprintable
/// characters as \uNNNN. JSON stays JSON.
std::string escaped(std::string_view text);
/// The same for a message of several lines: line ends and tabs stay.
std::string escaped_lines(std::string_view text);

}  // namespace harness
