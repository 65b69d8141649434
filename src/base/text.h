#pragma once

#ifndef __CUDACC__  // nvcc 13.0 cannot read fmt 9 in C++20: sources for it throw Error themselves
#include <fmt/format.h>
#endif

#include <algorithm>
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

/// Returns the shortest candidate that begins with `word` (3 letters or more), else one that has it as a part, else the
/// nearest by edit distance; "" if more than typos differ.
std::string nearest(std::string_view word, std::span<const std::string> candidates);

/// Returns "; did you mean X?", the end of a message about something unknown, or "" for an empty candidate.
std::string did_you_mean(std::string_view candidate);

/// 'text' for a message: control characters as \xNN and no more than 60 bytes, so that no input can garble a terminal.
std::string quote(std::string_view text);

/// Removes blanks at both ends.
std::string_view trim(std::string_view text);
/// ASCII letters in lower case, or in capitals.
std::string lower(std::string_view text);
std::string upper(std::string_view text);
/// Compares, ignoring the case of ASCII letters.
bool same_word(std::string_view a, std::string_view b);

/// Returns the parts between separators, one more than there are separators, as views of `text`.
std::vector<std::string_view> split(std::string_view text, char separator);
/// Returns the parts between separators, without an empty last one; none for an empty text.
std::vector<std::string> split_text(std::string_view text, std::string_view separator);
/// Replaces each of these characters by a text.
std::string replaced(std::string_view text, std::initializer_list<std::pair<char, std::string_view>> texts);
/// Replaces each occurrence of `what`.
std::string replaced_all(std::string text, std::string_view what, std::string_view with);
/// Whether `text` consists of ASCII letters, digits and `others`.
bool has_only(std::string_view text, std::string_view others);
/// Whether `text` begins with one of these.
bool starts_with_any(std::string_view text, std::span<const std::string_view> beginnings);

/// Quotes `text` as one shell word, for the user to copy; escaped() first, which alters unprintable characters.
std::string shell_word(std::string_view text);

/// Appends a value unless the list has it.
template <class T>
void add_once(std::vector<T>& list, std::type_identity_t<T> value) {
  if (std::find(list.begin(), list.end(), value) == list.end()) list.push_back(std::move(value));
}
std::string join(std::span<const std::string> parts, std::string_view separator);
/// Returns "a, b, c", or "a, b, 5 more" for more than `max_shown` parts.
std::string join_first(std::span<const std::string> parts, std::size_t max_shown);

/// "1 rank", "3 ranks": a noun that takes an s.
std::string plural(std::int64_t n, std::string_view noun);

/// FNV-1a, 64 bit: the same hash on every machine. Not for secrets.
std::uint64_t fnv1a(std::string_view bytes, std::uint64_t seed = 0xcbf29ce484222325ull);

// ---- characters

/// A character of UTF-8: in its shortest form, no surrogate, nothing beyond U+10FFFF (RFC 3629).
struct Character {
  std::uint32_t code = 0;
  std::size_t bytes = 0;  // 0: the bytes there are not UTF-8
};
/// Returns the character that begins at byte `at` of `text`.
Character character_at(std::string_view text, std::size_t at);

constexpr bool is_digit(char c) {
  return c >= '0' && c <= '9';
}
/// Whether a byte continues a character that began before it.
constexpr bool continues_character(char byte) {
  return (static_cast<unsigned char>(byte) & 0xc0u) == 0x80u;
}
/// Returns the length of the longest prefix of `text` of at most `most` bytes that cuts no character.
std::size_t whole_characters(std::string_view text, std::size_t most);

/// Whether a character does not belong in text for people: controls (C0, DEL and C1), marks that change the writing
/// direction or have no width, line and paragraph separators, byte order marks, and codes that XML forbids.
bool is_unprintable(std::uint32_t code);

/// Makes text from any source safe for a terminal: C0 controls and bytes that are not UTF-8 become \xNN, other
/// unprintable characters \uNNNN, except those in `kept`. JSON stays JSON.
std::string escaped(std::string_view text, std::string_view kept = "");
/// As escaped(), but keeps line ends and tabs, for messages of several lines.
inline std::string escaped_lines(std::string_view text) {
  return escaped(text, "\n\t");
}

// ---- errors

/// A failure with a message for the user: what happened, where, what was expected, what to do. Nothing else is printed.
/// `exit_code`: the exit status of the program if nothing handles it.
class Error : public std::runtime_error {
 public:
  explicit Error(const std::string& message, int exit_code = 1) : std::runtime_error(message), exit_code_(exit_code) {}
  int exit_code() const { return exit_code_; }

 private:
  int exit_code_;
};

#ifndef __CUDACC__
/// Escapes strings among the arguments of a message: text from outside (a path, a name, a line of a file) must not
/// break the line. what() of another Error may have several lines; it is a const char* and stays as it is.
template <class T>
decltype(auto) in_one_line(const T& argument) {
  if constexpr (std::is_same_v<T, std::string> || std::is_same_v<T, std::string_view>) {
    return escaped(argument);
  } else {
    return (argument);
  }
}

/// Throws Error. Strings among the arguments are escaped, so that line breaks come from `format`.
template <class... Args>
[[noreturn]] void fail(fmt::format_string<Args...> format, Args&&... args) {
  throw Error(fmt::format(fmt::runtime(format), in_one_line(args)...));
}
#endif

// ---- names and values

/// Names and their values, in significant order: environment variables, library versions.
using NameValues = std::vector<std::pair<std::string, std::string>>;

/// Returns the value of the first entry of that name, "" if there is none.
inline std::string value_of(const NameValues& entries, std::string_view name) {
  for (const auto& [key, value] : entries) {
    if (key == name) return value;
  }
  return "";
}

/// Parses the whole text as a number; nullopt if it is none or out of range. `base` is for integers.
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

// ---- parsing

/// Consumes a text from the front. A step that can fail returns whether it succeeded; if not, `rest` is unchanged.
struct Cursor {
  std::string_view rest;

  bool literal(std::string_view expected) {
    if (!rest.starts_with(expected)) return false;
    rest.remove_prefix(expected.size());
    return true;
  }
  /// Skips to behind the next occurrence of `expected`.
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
  /// Takes the text up to the next of these characters, or to the end.
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
  /// Takes a text in double quotes, unescaping \" and \\; nullopt if none begins here or it does not end.
  std::optional<std::string> quoted();
};

/// Prints a compound value on one line, "{key: value, …}", and quotes values beyond letters, digits and the like.
std::string print_map(const NameValues& entries);
/// Parses the output of print_map(), and unquoted values up to a comma; nullopt for any other text.
std::optional<NameValues> parse_map(std::string_view text);

}  // namespace harness
