#pragma once

#include <cstdint>
#include <initializer_list>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace harness {

/// The candidate nearest to `word` by edit distance; "" where none has only typos, for a wrong hint is worse than none.
std::string nearest(std::string_view word, std::span<const std::string> candidates);

/// "; did you mean X?", or "" for an empty candidate: the end of a message about something unknown.
std::string did_you_mean(std::string_view candidate);

/// 'text' for a message: control characters as \xNN and no more than 60 bytes, so that no input can garble a terminal.
std::string quote(std::string_view text);

/// Without the blanks at both ends.
std::string_view trim(std::string_view text);
/// ASCII letters in lower case.
std::string lower(std::string_view text);
/// Equal but for the case of ASCII letters.
bool same_word(std::string_view a, std::string_view b);

/// What stands between separators, one part more than there are of these. The parts are views of `text`.
std::vector<std::string_view> split(std::string_view text, char separator);
/// With a text in the place of each of these characters.
std::string replaced(std::string_view text, std::initializer_list<std::pair<char, std::string_view>> texts);
/// Whether `text` begins with one of these.
bool starts_with_any(std::string_view text, std::span<const std::string_view> beginnings);

/// The text as one word of a shell, for a command that a person copies. Control characters take what bash, zsh and
/// POSIX.1-2024 know, $'\012'; older shells do not.
std::string shell_word(std::string_view text);

std::string join(std::span<const std::string> parts, std::string_view separator);
/// "a, b, c", of more than `max_shown` parts "a, b, 5 more".
std::string join_first(std::span<const std::string> parts, std::size_t max_shown);

/// "1 rank", "3 ranks": a noun that takes an s.
std::string plural(std::int64_t n, std::string_view noun);

/// FNV-1a, 64 bit: names equal things equally on every machine. Not for secrets.
std::uint64_t fnv1a(std::string_view bytes, std::uint64_t seed = 0xcbf29ce484222325ull);

}  // namespace harness
