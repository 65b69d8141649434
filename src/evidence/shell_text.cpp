#include <algorithm>
#include <cctype>

#include "evidence/shell.h"

// Texts of a script, whatever its variables hold.

namespace harness::evidence {
namespace {

// Between brackets of one kind; quotes and comments hide them.
std::size_t bracket_span(std::string_view text, std::size_t at, char open, char close, int nesting) {
  std::size_t depth = 0, i = at;
  while (i < text.size()) {
    const char c = text[i];
    if (c == '\\') {
      i += 2;
    } else if (c == '\'' || c == '"' || c == '`') {
      i += shell_span(text, i, nesting + 1);
    } else if (c == '#' && open == '(' && i > 0 && (text[i - 1] == ' ' || text[i - 1] == '\n' || text[i - 1] == '\t')) {
      i = std::min(text.find('\n', i), text.size());
    } else {
      ++i;
      if (c == open) ++depth;
      if (c == close && --depth == 0) return i - at;
    }
  }
  return text.size() - at;
}

}  // namespace

std::size_t name_length(std::string_view text) {
  if (text.empty() || std::isdigit(static_cast<unsigned char>(text[0])) != 0) return 0;
  return static_cast<std::size_t>(std::ranges::find_if_not(text, is_name_character) - text.begin());
}

std::size_t shell_span(std::string_view text, std::size_t at, int depth) {
  constexpr int deepest = 32;
  if (depth > deepest) return text.size() - at;
  const char first = text[at];
  if (first == '\'') {
    const std::size_t end = text.find('\'', at + 1);
    return (end == std::string_view::npos ? text.size() : end + 1) - at;
  }
  if (first == '(') return bracket_span(text, at, '(', ')', depth);
  if (first == '$') {
    if (at + 1 >= text.size()) return 1;
    if (text[at + 1] == '(') return 1 + bracket_span(text, at + 1, '(', ')', depth);
    if (text[at + 1] == '{') return 1 + bracket_span(text, at + 1, '{', '}', depth);
    if (text[at + 1] == '\'') {
      for (std::size_t i = at + 2; i < text.size(); ++i) {
        if (text[i] == '\\') {
          ++i;
        } else if (text[i] == '\'') {
          return i + 1 - at;
        }
      }
      return text.size() - at;
    }
    return 1;
  }
  for (std::size_t i = at + 1; i < text.size();) {  // double quotes and back quotes
    if (text[i] == '\\') {
      i += 2;
    } else if (text[i] == first) {
      return i + 1 - at;
    } else {
      const bool nests = first == '"' && text[i] == '$' && i + 1 < text.size() && text[i + 1] != '\'';
      i += nests ? shell_span(text, i, depth + 1) : 1;
    }
  }
  return text.size() - at;
}

std::string in_case(std::string text, char op, bool all) {
  for (std::size_t i = 0; i < (all ? text.size() : std::min<std::size_t>(text.size(), 1)); ++i) {
    const auto c = static_cast<unsigned char>(text[i]);
    text[i] = static_cast<char>(op == ',' ? std::tolower(c) : std::toupper(c));
  }
  return text;
}

std::string without_end(const std::string& text, std::string_view pattern, bool from_end, bool longest) {
  for (std::size_t n = 0; n <= text.size(); ++n) {
    const std::size_t length = longest ? text.size() - n : n;
    const std::string_view part = std::string_view(text).substr(from_end ? text.size() - length : 0, length);
    if (matches_pattern(part, pattern)) return from_end ? text.substr(0, text.size() - length) : text.substr(length);
  }
  return text;
}

bool matches_pattern(std::string_view text, std::string_view pattern) {
  std::size_t t = 0, p = 0, star = std::string_view::npos, from = 0;
  const auto one = [&]() -> std::size_t {  // how much of the pattern takes text[t]; 0: it does not
    if (p >= pattern.size()) return 0;
    const std::size_t close = pattern[p] == '[' ? pattern.find(']', p + 2) : std::string_view::npos;
    if (close != std::string_view::npos) {
      const std::string_view set = pattern.substr(p + 1, close - p - 1);
      const bool inverse = set[0] == '!' || set[0] == '^';
      bool in = false;
      for (std::size_t i = inverse ? 1 : 0; i < set.size(); ++i) {
        const bool range = i + 2 < set.size() && set[i + 1] == '-';
        in = in || (range ? text[t] >= set[i] && text[t] <= set[i + 2] : text[t] == set[i]);
        if (range) i += 2;
      }
      return in != inverse ? close - p + 1 : 0;
    }
    if (pattern[p] == '\\' && p + 1 < pattern.size()) return pattern[p + 1] == text[t] ? 2 : 0;
    return pattern[p] == '?' || pattern[p] == text[t] ? 1 : 0;
  };
  while (t < text.size()) {
    if (p < pattern.size() && pattern[p] == '*') {
      star = ++p;
      from = t;
    } else if (const std::size_t taken = one(); taken > 0) {
      p += taken;
      ++t;
    } else if (star != std::string_view::npos) {
      p = star;
      t = ++from;
    } else {
      return false;
    }
  }
  while (p < pattern.size() && pattern[p] == '*') ++p;
  return p == pattern.size();
}

}  // namespace harness::evidence
