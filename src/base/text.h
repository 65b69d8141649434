#pragma once

#ifndef __CUDACC__  // nvcc 13.0 cannot read fmt 9 in C++20: sources for it throw Error themselves
#include <fmt/format.h>
#endif

#include <charconv>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <optional>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <system_error>
#include <type_traits>
#include <utility>
#include <vector>

namespace harness {

/// The shortest candidate that begins with `word`, else the nearest by edit distance; "" where more than typos differ.
std::string nearest(std::string_view word, std::span<const std::string> candidates);

/// "; did you mean X?", or "" for an empty candidate: the end of a message about something unknown.
std::string did_you_mean(std::string_view candidate);

/// 'text' for a message: control characters as \xNN and no more than 60 bytes, so that no input can garble a terminal.
std::string quote(std::string_view text);

/// Takes the blanks off both ends.
std::string_view trim(std::string_view text);
/// ASCII letters in lower case, or in capitals.
std::string lower(std::string_view text);
std::string upper(std::string_view text);
/// Equal but for the case of ASCII letters.
bool same_word(std::string_view a, std::string_view b);

/// The parts between separators, one part more than there are of these. The parts are views of `text`.
std::vector<std::string_view> split(std::string_view text, char separator);
/// The parts between separators, without an empty one at the end; none of an empty text.
std::vector<std::string> split_text(std::string_view text, std::string_view separator);
/// Replaces each of these characters by a text.
std::string replaced(std::string_view text, std::initializer_list<std::pair<char, std::string_view>> texts);
/// Whether `text` has nothing but ASCII letters, digits and these others.
bool has_only(std::string_view text, std::string_view others);
/// Whether `text` begins with one of these.
bool starts_with_any(std::string_view text, std::span<const std::string_view> beginnings);

/// The text as one word of a shell, for a command that a person copies; escaped(), so that it is another text where it
/// has what is not for terminals.
std::string shell_word(std::string_view text);

std::string join(std::span<const std::string> parts, std::string_view separator);
/// "a, b, c", of more than `max_shown` parts "a, b, 5 more".
std::string join_first(std::span<const std::string> parts, std::size_t max_shown);

/// "1 rank", "3 ranks": a noun that takes an s.
std::string plural(std::int64_t n, std::string_view noun);

/// FNV-1a, 64 bit: names equal things equally on every machine. Not for secrets.
std::uint64_t fnv1a(std::string_view bytes, std::uint64_t seed = 0xcbf29ce484222325ull);

// ---- characters

/// A character of UTF-8: in its shortest form, no surrogate, nothing beyond U+10FFFF (RFC 3629).
struct Character {
  std::uint32_t code = 0;
  std::size_t bytes = 0;  // 0: there is none, what stands there is not UTF-8
};
/// The character that begins at a place within `text`.
Character character_at(std::string_view text, std::size_t at);

/// Whether a byte goes on with a character that began before it.
constexpr bool continues_character(char byte) {
  return (static_cast<unsigned char>(byte) & 0xc0u) == 0x80u;
}
/// How many bytes of `text`, at most `most`, end with a whole character.
std::size_t whole_characters(std::string_view text, std::size_t most);

/// Whether a character is no part of a text for people: controls (C0, DEL and C1), marks that turn the direction of
/// writing or take no room, line and paragraph separators, byte order marks, and codes that XML forbids.
bool is_unprintable(std::uint32_t code);

/// `text` for a terminal, whoever wrote it: C0 controls and bytes that are not UTF-8 come as \xNN, other unprintable
/// characters as \uNNNN. JSON stays JSON.
std::string escaped(std::string_view text);
/// escaped() for a message of several lines: line ends and tabs stay.
std::string escaped_lines(std::string_view text);

// ---- errors

/// A failure with a message for the person at the terminal: what happened, where, what was expected, what to do.
/// Nothing else is printed for it. `exit_code` is what the program ends with if nobody handles it.
class Error : public std::runtime_error {
 public:
  explicit Error(const std::string& message, int exit_code = 1) : std::runtime_error(message), exit_code_(exit_code) {}
  int exit_code() const { return exit_code_; }

 private:
  int exit_code_;
};

#ifndef __CUDACC__
/// An argument of a message. A text that came from outside (a path, a name, a line of a file) must not end the line
/// that it stands in; what() of another Error may have several, and is a const char*.
template <class T>
decltype(auto) in_one_line(const T& argument) {
  if constexpr (std::is_same_v<T, std::string> || std::is_same_v<T, std::string_view>) {
    return escaped(argument);
  } else {
    return (argument);
  }
}

/// Throws Error. The lines of the message are those of `format`: texts among the arguments come escaped().
template <class... Args>
[[noreturn]] void fail(fmt::format_string<Args...> format, Args&&... args) {
  throw Error(fmt::format(fmt::runtime(format), in_one_line(args)...));
}
#endif

// ---- names and values

/// Names and their values, in an order that means something: environment variables, library versions.
using NameValues = std::vector<std::pair<std::string, std::string>>;

/// The value of the first entry of that name, "" if there is none.
inline std::string value_of(const NameValues& entries, std::string_view name) {
  for (const auto& [key, value] : entries) {
    if (key == name) return value;
  }
  return "";
}

/// The number that the whole text is; nothing where it is no number or too large. Integers may have another base.
template <class Number>
std::optional<Number> number_in(std::string_view text, [[maybe_unused]] int base = 10) {
  Number value{};
  const char* const end = text.data() + text.size();
  std::from_chars_result read{};
  if constexpr (std::is_integral_v<Number>) {
    read = std::from_chars(text.data(), end, value, base);
  } else {
    read = std::from_chars(text.data(), end, value);
  }
  return read.ec == std::errc{} && read.ptr == end ? std::optional(value) : std::nullopt;
}

// ---- reading along

/// Reads along a text. Every step that can fail says whether it succeeded and leaves the place alone if not.
struct Cursor {
  std::string_view rest;

  bool literal(std::string_view expected) {
    if (!rest.starts_with(expected)) return false;
    rest.remove_prefix(expected.size());
    return true;
  }
  /// To behind the next place where `expected` stands.
  bool after(std::string_view expected) {
    const auto at = rest.find(expected);
    if (at == std::string_view::npos) return false;
    rest.remove_prefix(at + expected.size());
    return true;
  }
  template <class Integer>
  bool integer(Integer& value) {
    const auto [end, error] = std::from_chars(rest.data(), rest.data() + rest.size(), value);
    if (error != std::errc()) return false;
    rest.remove_prefix(end - rest.data());
    return true;
  }
  /// Up to the next of these characters, or to the end.
  std::string_view until(std::string_view ends) {
    const std::string_view taken = rest.substr(0, rest.find_first_of(ends));
    rest.remove_prefix(taken.size());
    return taken;
  }
  std::string_view word() { return until(" "); }
  void skip_blanks() {
    while (literal(" ")) {
    }
  }
  /// A text in double quotes, with \" and \\ in it; nullopt where none begins or where it does not end.
  std::optional<std::string> quoted();
};

/// "{key: value, …}" on one line: a compound value. A value that is more than letters, digits and the like is quoted.
std::string print_map(const NameValues& entries);
/// Reads what print_map() prints, and values without quotes up to a comma; nullopt for any other text.
std::optional<NameValues> parse_map(std::string_view text);

}  // namespace harness
