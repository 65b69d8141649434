#include "base/text.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <iterator>

namespace harness {
namespace {

// Converts to lower case, with _ between the parts of a name; a value behind = belongs to the last part.
std::string plain(std::string_view name) {
  std::string text = lower(name);
  std::ranges::replace_if(
      text, [](unsigned char c) { return std::isalnum(c) == 0 && c != '='; }, '_');
  return text;
}

// Optimal string alignment: insertions, deletions, substitutions and swaps of neighbours.
std::size_t edit_distance(std::string_view a, std::string_view b) {
  std::vector<std::vector<std::size_t>> d(a.size() + 1, std::vector<std::size_t>(b.size() + 1));
  for (std::size_t i = 0; i <= a.size(); ++i) d[i][0] = i;
  for (std::size_t j = 0; j <= b.size(); ++j) d[0][j] = j;
  for (std::size_t i = 1; i <= a.size(); ++i) {
    for (std::size_t j = 1; j <= b.size(); ++j) {
      const std::size_t change = a[i - 1] == b[j - 1] ? 0 : 1;
      d[i][j] = std::min({d[i - 1][j] + 1, d[i][j - 1] + 1, d[i - 1][j - 1] + change});
      if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1])
        d[i][j] = std::min(d[i][j], d[i - 2][j - 2] + 1);
    }
  }
  return d[a.size()][b.size()];
}

// The most letters that a typo changes; more changes make another word.
std::size_t typo(std::size_t letters) {
  return std::max<std::size_t>(1, (letters + 1) / 3);
}

// Whether both contain digits, and not the same: "h100" is not "h200", and "LL182" may be "LL128".
bool has_other_numbers(std::string_view word, std::string_view candidate) {
  const auto digits_of = [](std::string_view text) {
    std::string digits;
    std::ranges::copy_if(text, std::back_inserter(digits), is_digit);
    std::ranges::sort(digits);
    return digits;
  };
  const std::string a = digits_of(word), b = digits_of(candidate);
  return !a.empty() && !b.empty() && a != b;
}

// Whether at most a typo differs. Short parts need the same first letter: "gpu" is not "cpu", "b200" not "h200".
bool is_part_with_typo(std::string_view part, std::string_view of) {
  constexpr std::size_t is_short = 4;
  const std::size_t distance = edit_distance(part, of);
  if (distance == 0) return true;
  const bool other_first = part.empty() || of.empty() || part[0] != of[0];
  const bool swapped = part.size() > 1 && of.size() > 1 && part[0] == of[1];
  return distance <= typo(part.size()) && !(other_first && !swapped && std::min(part.size(), of.size()) <= is_short);
}

// Strips the value: "micro_batch_size" of "micro_batch_size=3".
std::string_view name_of(std::string_view word) {
  return word.substr(0, word.find('='));
}

// Plain words with the same number of parts match if all parts do: "context_parallel" is not "tensor_parallel".
bool has_typos_alone(std::string_view word, std::string_view candidate) {
  const std::vector<std::string_view> parts = split(word, '_'), others = split(candidate, '_');
  if (parts.size() == others.size()) return std::ranges::equal(parts, others, is_part_with_typo);
  constexpr std::size_t separators = 2;  // missing or extra
  return edit_distance(word, candidate) <= std::min(separators, typo(word.size()));
}

// Ranks a candidate, the nearest lowest; nullopt: no match. First come names that begin with the typed text, whole
// parts before others and shorter ones before longer ones; then names that have it as a part; then typos. Text that
// ends amid a number does not match as a beginning.
std::optional<std::pair<std::size_t, std::size_t>> nearness(std::string_view typed, std::string_view name) {
  constexpr std::size_t least = 3, longest = 1000;
  const std::string word = plain(typed), candidate = plain(name);
  const char next = candidate.size() > word.size() ? candidate[word.size()] : '_';
  if (word.size() >= least && candidate.starts_with(word) && !(is_digit(next) && is_digit(word.back())))
    return std::pair(std::size_t{0},
                     candidate.size() + (std::isalpha(static_cast<unsigned char>(next)) == 0 ? 0 : longest));
  if (word.size() >= least && ("_" + candidate + "_").find("_" + word + "_") != std::string::npos)
    return std::pair(std::size_t{1}, std::size_t{0});
  if (has_other_numbers(name_of(typed), name_of(name)) || !has_typos_alone(word, candidate)) return std::nullopt;
  return std::pair(edit_distance(word, candidate), std::size_t{0});
}

// YAML's notation. JSON gives it the same meaning, and its strings hold no raw C0 controls.
std::string notation_of(std::uint32_t code) {
  return code < 0x20 ? fmt::format("\\x{:02x}", code) : fmt::format("\\u{:04x}", code);
}

// Takes the text up to one of `ends`, without blanks around it; nullopt if it is empty or should be quoted.
std::optional<std::string> plain_word(Cursor& cursor, std::string_view ends) {
  cursor.skip_blanks();
  const std::string_view word = trim(cursor.until(ends));
  if (word.empty() || word.find_first_of("\"{}") != std::string_view::npos) return std::nullopt;
  return std::string(word);
}

}  // namespace

std::string nearest(std::string_view word, std::span<const std::string> candidates) {
  constexpr std::size_t longest = 64;
  word = word.substr(0, longest);
  std::string best;
  std::pair<std::size_t, std::size_t> best_rank(std::string::npos, 0);
  for (const auto& candidate : candidates) {
    const auto rank = nearness(word, candidate);
    if (!rank || *rank >= best_rank) continue;
    best_rank = *rank;
    best = candidate;
  }
  return best;
}

std::string did_you_mean(std::string_view candidate) {
  return candidate.empty() ? std::string() : fmt::format("; did you mean {}?", candidate);
}

std::string quote(std::string_view text) {
  std::string out = "'";
  const std::size_t end = whole_characters(text, 60);
  out += escaped(text.substr(0, end));
  return out + (end < text.size() ? "…'" : "'");
}

std::string shell_word(std::string_view text) {
  if (!text.empty() && has_only(text, "_-./:,@%+=")) return std::string(text);
  return "'" + replaced(escaped(text), {{'\'', "'\\''"}}) + "'";
}

std::string_view trim(std::string_view text) {
  const auto blank = [](char c) { return c == ' ' || c == '\t' || c == '\n' || c == '\r'; };
  while (!text.empty() && blank(text.front())) text.remove_prefix(1);
  while (!text.empty() && blank(text.back())) text.remove_suffix(1);
  return text;
}

std::string lower(std::string_view text) {
  std::string out(text);
  for (char& c : out) {
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  }
  return out;
}

std::string upper(std::string_view text) {
  std::string out(text);
  for (char& c : out) {
    if (c >= 'a' && c <= 'z') c = static_cast<char>(c - 'a' + 'A');
  }
  return out;
}

bool same_word(std::string_view a, std::string_view b) {
  return lower(a) == lower(b);
}

std::vector<std::string_view> split(std::string_view text, char separator) {
  std::vector<std::string_view> parts;
  while (true) {
    const std::size_t end = text.find(separator);
    parts.push_back(text.substr(0, end));
    if (end == std::string_view::npos) return parts;
    text.remove_prefix(end + 1);
  }
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

std::string replaced(std::string_view text, std::initializer_list<std::pair<char, std::string_view>> texts) {
  std::string out;
  for (const char c : text) {
    const auto* found = std::ranges::find(texts, c, &std::pair<char, std::string_view>::first);
    out += found == texts.end() ? std::string_view(&c, 1) : found->second;
  }
  return out;
}

std::string replaced_all(std::string text, std::string_view what, std::string_view with) {
  for (std::size_t at = 0; (at = text.find(what, at)) != std::string::npos; at += with.size())
    text.replace(at, what.size(), with);
  return text;
}

bool starts_with_any(std::string_view text, std::span<const std::string_view> beginnings) {
  return std::ranges::any_of(beginnings, [&](std::string_view beginning) { return text.starts_with(beginning); });
}

bool has_only(std::string_view text, std::string_view others) {
  return std::ranges::all_of(text, [&](char c) {
    return std::isalnum(static_cast<unsigned char>(c)) != 0 || others.find(c) != std::string_view::npos;
  });
}

std::string join(std::span<const std::string> parts, std::string_view separator) {
  return fmt::format("{}", fmt::join(parts, separator));
}

std::string join_first(std::span<const std::string> parts, std::size_t max_shown) {
  if (parts.size() <= max_shown) return join(parts, ", ");
  return join(parts.first(max_shown), ", ") + ", " + std::to_string(parts.size() - max_shown) + " more";
}

std::string plural(std::int64_t n, std::string_view noun) {
  return fmt::format("{} {}{}", n, noun, n == 1 ? "" : "s");
}

std::uint64_t fnv1a(std::string_view bytes, std::uint64_t seed) {
  for (const char c : bytes) {
    seed ^= static_cast<unsigned char>(c);
    seed *= 0x100000001b3ull;
  }
  return seed;
}

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

bool is_unprintable(std::uint32_t c) {
  return c < 0x20 || (c >= 0x7f && c < 0xa0) || c == 0x061c || (c >= 0x200b && c <= 0x200f) ||
         (c >= 0x2028 && c <= 0x202e) || (c >= 0x2060 && c <= 0x206f) || c == 0xfeff || c == 0xfffe || c == 0xffff;
}

std::string escaped(std::string_view text, std::string_view kept) {
  std::string out;
  out.reserve(text.size());
  while (!text.empty()) {
    const Character c = character_at(text, 0);
    const std::size_t bytes = c.bytes == 0 ? 1 : c.bytes;
    const std::string_view character = text.substr(0, bytes);
    text.remove_prefix(bytes);
    if (c.bytes == 0) {
      out += fmt::format("\\x{:02x}", static_cast<unsigned char>(character[0]));
    } else if (is_unprintable(c.code) && kept.find(character) == std::string_view::npos) {
      out += notation_of(c.code);
    } else {
      out += character;
    }
  }
  return out;
}

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

std::string print_map(const NameValues& entries) {
  std::vector<std::string> parts;
  for (const auto& [key, value] : entries) {
    const bool plain = !value.empty() && has_only(value, "_./:+-=@%^");
    const std::string shown = plain ? value : '"' + replaced(value, {{'"', "\\\""}, {'\\', "\\\\"}}) + '"';
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
