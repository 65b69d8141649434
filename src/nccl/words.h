#pragma once

#include <charconv>
#include <string>
#include <string_view>
#include <vector>

// Reading NCCL's log a word at a time, and its names in the spelling of NCCL_ALGO and NCCL_PROTO.

namespace harness::nccl {

/// Reads along a text. Every step says whether it succeeded and leaves the place alone if not.
struct TextCursor {
  std::string_view rest;

  bool literal(std::string_view expected) {
    if (!rest.starts_with(expected)) return false;
    rest.remove_prefix(expected.size());
    return true;
  }
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
  /// Up to the next blank.
  std::string_view word() {
    const std::string_view taken = rest.substr(0, rest.find(' '));
    rest.remove_prefix(taken.size());
    return taken;
  }
};

/// "1" or "RING" → "Ring"; a word that is none of NCCL's stays.
std::string algorithm_name(std::string_view word);
/// "2" or "SIMPLE" → "Simple".
std::string protocol_name(std::string_view word);
/// Letters, digits and underscores.
bool is_name(std::string_view text);
std::vector<std::string> split_text(std::string_view text, std::string_view separator);

}  // namespace harness::nccl
