#pragma once

#include <charconv>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/text.h"

namespace harness {

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

/// The parts between separators; none of an empty text.
std::vector<std::string> split_text(std::string_view text, std::string_view separator);

/// "{key: value, …}" on one line: a compound value. A value that is more than letters, digits and the like is quoted.
std::string print_map(const NameValues& entries);
/// Reads what print_map() prints, and values without quotes up to a comma; nullopt for any other text.
std::optional<NameValues> parse_map(std::string_view text);

}  // namespace harness
