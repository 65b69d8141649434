#include "config/reference.h"

#include <algorithm>

#include "base/error.h"
#include "base/text.h"
#include "base/units.h"
#include "config/keys.h"

namespace harness::config {
namespace {

// "4 MiB" of "default, a power of two such as 4 MiB", "" if there is none.
std::string named_example(std::string_view allowed) {
  constexpr std::string_view words = "such as ";
  const std::size_t at = allowed.find(words);
  if (at == std::string_view::npos) return "";
  const std::string_view rest = allowed.substr(at + words.size());
  return std::string(rest.substr(0, rest.find(';')));
}

bool is_number(std::string_view text) {
  return !text.empty() && text.find_first_not_of("0123456789") == std::string_view::npos;
}

// "32" of "16", "50 MiB" of "25 MiB", "" of a word.
std::string times(std::string_view text, std::int64_t factor) {
  if (is_number(text)) return std::to_string(parse_integer(text) * factor);
  try {
    return print_bytes_exact(parse_bytes(text) * factor);
  } catch (const Error&) {
    return "";
  }
}

// "{m: 8192}" of "{m: 4096, n: 4096}".
std::string first_part_times(std::string_view text, std::int64_t factor) {
  const std::size_t colon = text.find(": "), end = text.find_first_of(",}");
  if (colon == std::string_view::npos || end == std::string_view::npos || end < colon) return "";
  return std::string(text.substr(0, colon + 2)) + times(text.substr(colon + 2, end - colon - 2), factor) + "}";
}

std::vector<std::string> candidates(const Variable& variable) {
  const std::string usual = default_of(variable);
  std::vector<std::string> found{named_example(variable.allowed)};
  const Words words = words_of(variable.allowed, [&](std::string_view word) {
    Settings s;
    variable.parse(s, word);
  });
  found.insert(found.end(), words.words.begin(), words.words.end());
  for (const std::int64_t factor : {2, 4}) {
    found.push_back(variable.parts.empty() ? times(usual, factor) : first_part_times(usual, factor));
  }
  if (found.front().empty() && !is_number(usual)) found.insert(found.end(), {"2", "4"});
  return found;
}

// The items of a list between brackets end at commas.
std::string in_list(const std::string& value) {
  const bool plain = value.starts_with('{') || value.find(',') == std::string::npos;
  return plain ? value : '"' + value + '"';
}

}  // namespace

std::string default_of(const Variable& variable) {
  return variable.print({});
}

std::vector<std::string> example_values(const Variable& variable) {
  constexpr std::size_t enough = 2;
  std::vector<std::string> values, seen{default_of(variable)};
  for (const std::string& text : candidates(variable)) {
    Settings s;
    try {
      variable.parse(s, text);
    } catch (const Error&) {
      continue;
    }
    if (std::ranges::find(seen, variable.print(s)) != seen.end()) continue;
    seen.push_back(variable.print(s));
    values.push_back(in_list(text));
    if (values.size() == enough) break;
  }
  return values;
}

std::string example_of(const Variable& variable) {
  const std::vector<std::string> values = example_values(variable);
  if (variable.fixed) return fmt::format("{}: {}", variable.name, values.front());
  return fmt::format("sweep: {{{}: [{}]}}", variable.name, join(values, ", "));
}

}  // namespace harness::config
