#include "base/cursor.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>

#include "base/text.h"

namespace harness {
namespace {

bool is_plain(std::string_view value) {
  return !value.empty() && std::ranges::all_of(value, [](unsigned char c) {
    return std::isalnum(c) != 0 || std::string_view("_./:+-=@%^").find(static_cast<char>(c)) != std::string_view::npos;
  });
}

// Up to one of `ends`, without blanks around it; nullopt for nothing and for what should be quoted.
std::optional<std::string> plain_word(Cursor& cursor, std::string_view ends) {
  cursor.skip_blanks();
  const std::string_view word = trim(cursor.until(ends));
  if (word.empty() || word.find_first_of("\"{}") != std::string_view::npos) return std::nullopt;
  return std::string(word);
}

}  // namespace

std::optional<std::string> Cursor::quoted() {
  Cursor ahead{rest};
  if (!ahead.literal("\"")) return std::nullopt;
  std::string text;
  while (true) {
    text += ahead.until("\"\\");
    if (ahead.literal("\"")) break;
    if (!ahead.literal("\\") || ahead.rest.empty()) return std::nullopt;
    text += ahead.rest.front();
    ahead.rest.remove_prefix(1);
  }
  rest = ahead.rest;
  return text;
}

std::vector<std::string> split_text(std::string_view text, std::string_view separator) {
  std::vector<std::string> parts;
  while (!text.empty()) {
    const auto at = text.find(separator);
    parts.emplace_back(text.substr(0, at));
    text.remove_prefix(at == std::string_view::npos ? text.size() : at + separator.size());
  }
  return parts;
}

std::string print_map(const NameValues& entries) {
  std::vector<std::string> parts;
  for (const auto& [key, value] : entries) {
    const std::string shown = is_plain(value) ? value : '"' + replaced(value, {{'"', "\\\""}, {'\\', "\\\\"}}) + '"';
    parts.push_back(fmt::format("{}: {}", key, shown));
  }
  return "{" + join(parts, ", ") + "}";
}

std::optional<NameValues> parse_map(std::string_view text) {
  Cursor cursor{trim(text)};
  NameValues entries;
  if (!cursor.literal("{")) return std::nullopt;
  cursor.skip_blanks();
  if (cursor.rest == "}") return entries;
  do {
    const auto key = plain_word(cursor, ":,}");
    if (!key || !cursor.literal(":")) return std::nullopt;
    cursor.skip_blanks();
    auto value = cursor.rest.starts_with('"') ? cursor.quoted() : plain_word(cursor, ",}");
    if (!value) return std::nullopt;
    entries.emplace_back(*key, std::move(*value));
    cursor.skip_blanks();
  } while (cursor.literal(","));
  if (cursor.rest != "}") return std::nullopt;
  return entries;
}

}  // namespace harness
