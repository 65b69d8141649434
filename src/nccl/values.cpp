#include "nccl/values.h"

#include <algorithm>
#include <bit>
#include <cerrno>
#include <cstdlib>

#include "base/text.h"
#include "base/units.h"

namespace harness::nccl {
namespace {

using Words = std::vector<std::string>;

const Words functions{"Broadcast", "Reduce", "AllGather", "ReduceScatter", "AllReduce"};

struct Entry {
  std::string function;  // "": all
  bool all_but = false;
  Words elements;
};

// Returns `word` as spelt among `words`, ignoring case. `whole`: the value that contains it, for the message.
std::string known_word(std::string_view word, Elements words, std::string_view kind, std::string_view whole) {
  for (const std::string& known : words) {
    if (same_word(word, known)) return known;
  }
  const std::string inside = word == whole ? std::string() : fmt::format(" in {}", quote(whole));
  fail("found {}{}; {}: {}{}", quote(word), inside, kind, join(words, ", "), did_you_mean(nearest(word, words)));
}

std::vector<Entry> entries_of(std::string_view text, Elements elements) {
  const std::string_view whole = trim(text);
  std::vector<Entry> entries;
  for (std::string_view rest : split(whole, ';')) {
    Entry entry;
    rest = trim(rest);
    if (const auto colon = rest.find(':'); colon != std::string_view::npos) {
      entry.function = known_word(trim(rest.substr(0, colon)), functions, "allowed before ':'", whole);
      rest = trim(rest.substr(colon + 1));
    } else if (!entries.empty()) {
      fail(
          "found {} without a function in {}; only the first entry may omit it; expected a value such as '{}' or "
          "'AllReduce:{},{}'",
          quote(rest), quote(whole), elements[0], elements[0], elements[1]);
    }
    if (std::ranges::find(entries, entry.function, &Entry::function) != entries.end()) {
      fail("found {} twice in {}; NCCL would silently drop the first of the two", entry.function, quote(whole));
    }
    entry.all_but = rest.starts_with('^');
    if (entry.all_but) rest.remove_prefix(1);
    for (const std::string_view element : split(rest, ',')) {
      entry.elements.push_back(known_word(trim(element), elements, "allowed, besides default", whole));
    }
    entries.push_back(std::move(entry));
  }
  return entries;
}

Words named_by(const Entry& entry, Elements elements, bool named) {
  Words words;
  for (const std::string& element : elements) {
    if ((std::ranges::find(entry.elements, element) != entry.elements.end()) == named) words.push_back(element);
  }
  return words;
}

}  // namespace

std::string canonical_choices(std::string_view text, Elements elements) {
  std::string out;
  for (const Entry& entry : entries_of(text, elements)) {
    if (!out.empty()) out += ';';
    if (!entry.function.empty()) out += entry.function + ":";
    if (entry.all_but) out += '^';
    out += join(named_by(entry, elements, true), ",");
  }
  return out;
}

Choices choices_of(std::string_view text, Elements elements) {
  Choices chosen;
  for (const std::string& function : functions) chosen[function].assign(elements.begin(), elements.end());
  if (text == "default") return chosen;
  for (const Entry& entry : entries_of(text, elements)) {
    for (auto& [function, allowed] : chosen) {
      if (entry.function.empty() || entry.function == function) allowed = named_by(entry, elements, !entry.all_but);
    }
  }
  return chosen;
}

std::optional<std::int64_t> parse_integer(std::string_view text) {
  std::string_view digits = text;
  const bool negative = digits.starts_with('-');
  if (negative) digits.remove_prefix(1);
  const bool hexadecimal = digits.starts_with("0x") || digits.starts_with("0X");
  if (hexadecimal) digits.remove_prefix(2);
  // A leading zero would make it octal for NCCL.
  if (!hexadecimal && digits.size() > 1 && digits.front() == '0') return std::nullopt;
  const auto value = number_in<std::int64_t>(digits, hexadecimal ? 16 : 10);
  if (!value || digits.front() == '-') return std::nullopt;
  return negative ? -*value : *value;
}

std::string misread_as(std::string_view text) {
  if (text.empty()) return "NCCL would use its default";
  errno = 0;
  const std::int64_t value = std::strtoll(std::string(text).c_str(), nullptr, 0);
  if (errno != 0) return "this does not fit in 64 bits, so NCCL would use its default";
  return fmt::format("NCCL expects a plain whole number and would silently read this as {}", value);
}

std::string canonical_integer(std::string_view text, std::int64_t low, std::int64_t high) {
  const auto value = parse_integer(text);
  if (!value) fail("found {}; {}. Allowed: default, {} to {}", quote(text), misread_as(text), low, high);
  if (*value < low || *value > high) fail("found {}; allowed: default, {} to {}", *value, low, high);
  return std::to_string(*value);
}

std::string canonical_flag(std::string_view text) {
  if (text == "0" || text == "1") return text == "1" ? "true" : "false";
  try {
    return parse_bool(text) ? "true" : "false";
  } catch (const Error&) {
    fail("found {}; allowed: default, true, false", quote(text));
  }
}

std::string canonical_bytes(std::string_view text, std::int64_t low, std::int64_t high) {
  std::int64_t bytes = 0;
  try {
    bytes = parse_bytes(text);
  } catch (const Error& e) {
    fail("{}. {}", e.what(), misread_as(text));
  }
  const std::string allowed =
      fmt::format("default, a power of two from {} to {}", print_bytes_exact(low), print_bytes_exact(high));
  if (bytes < low || bytes > high) fail("found {}; allowed: {}", quote(text), allowed);
  if (!std::has_single_bit(static_cast<std::uint64_t>(bytes))) {
    const auto below = static_cast<std::int64_t>(std::bit_floor(static_cast<std::uint64_t>(bytes)));
    fail(
        "found {}, which is {} bytes and not a power of two: NCCL does not check this, and its results can be wrong "
        "(NCCL issue 698). Allowed: {}, such as {} or {}",
        quote(text), bytes, allowed, print_bytes_exact(below), print_bytes_exact(std::min(high, 2 * below)));
  }
  return print_bytes_exact(bytes);
}

std::string canonical_level(std::string_view text) {
  for (const std::string& level : levels) {
    if (same_word(level, text)) return level;
  }
  if (parse_integer(text)) {
    fail("found {}; NCCL's numbers for levels follow an older scale (5 is SYS, not PXB). Allowed: default, {}",
         quote(text), join(levels, ", "));
  }
  fail("found {}, which NCCL would silently ignore; allowed: default, {}{}", quote(text), join(levels, ", "),
       did_you_mean(nearest(upper(text), levels)));
}

DeviceList::DeviceList(std::string_view text) {
  Cursor cursor{text};
  all_but = cursor.literal("^");
  exact = cursor.literal("=");
  names = split_text(cursor.rest, ",");
  if (names.size() > 1) std::erase(names, "");  // NCCL skips them
}

bool DeviceList::matches(const std::string& name, std::string_view device) const {
  device = device.substr(0, device.find('/'));
  const auto has_port = device.find(':'), wants_port = name.find(':');
  const std::string_view base = device.substr(0, has_port), wanted = std::string_view(name).substr(0, wants_port);
  if (exact ? base != wanted : !base.starts_with(wanted)) return false;
  return wants_port == std::string::npos || has_port == std::string_view::npos ||
         device.substr(has_port) == std::string_view(name).substr(wants_port);
}

bool DeviceList::allows(std::string_view device) const {
  return all_but != std::ranges::any_of(names, [&](const std::string& name) { return matches(name, device); });
}

}  // namespace harness::nccl
