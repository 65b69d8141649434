#include "nccl/values.h"

#include <algorithm>
#include <bit>
#include <cctype>
#include <cerrno>
#include <charconv>
#include <cstdlib>
#include <set>
#include <vector>

#include "base/error.h"
#include "base/text.h"
#include "base/units.h"

namespace harness::nccl {
namespace {

bool is_default(std::string_view text) {
  return same_word(text, "default");
}

// A number from low to high, or an Error that says how NCCL would misread it.
std::int64_t checked_integer(std::string_view text, const std::string& allowed) {
  const auto value = parse_integer(text);
  if (!value) fail("found {}; {}. Allowed: default, {}", quote(text), misread_as(text), allowed);
  return *value;
}

// A size with a unit of ours; NCCL knows no units.
std::int64_t checked_bytes(std::string_view text) {
  try {
    return parse_bytes(text);
  } catch (const Error& e) {
    fail("{}. {}", e.what(), misread_as(text));
  }
}

// parseStringList (src/misc/utils.cc) copies a name into 64 bytes and does not check its length.
constexpr std::size_t max_name_length = 63;

// The names of "[^][=]name,…", each given to `check`.
template <class Check>
std::string canonical_list(std::string_view text, std::size_t max_names, std::string_view example, Check&& check) {
  const std::string_view whole = trim(text);
  if (is_default(whole)) return "default";
  if (whole.empty()) fail("found ''; write default to leave the choice to NCCL, or a list such as {}", example);
  std::string out;
  std::string_view rest = whole;
  for (const char mark : {'^', '='}) {  // NCCL looks for them in this order
    if (!rest.starts_with(mark)) continue;
    out += mark;
    rest.remove_prefix(1);
  }
  std::set<std::string_view> seen;
  for (const std::string_view untrimmed : split(rest, ',')) {
    const std::string_view name = trim(untrimmed);
    if (name.empty()) fail("found an empty name in {}; expected a list such as {}", quote(whole), example);
    if (name.find_first_of("^=") != std::string_view::npos) {
      fail(
          "found {} in {}; '^' (all but these) and '=' (exact names) may each appear once, in this order, before the "
          "list",
          quote(name), quote(whole));
    }
    for (const char c : name) {
      if (std::isgraph(static_cast<unsigned char>(c)) == 0) {
        fail("found {} in {}; a name has no blanks; expected a list such as {}", quote(name), quote(whole), example);
      }
    }
    if (std::isalnum(static_cast<unsigned char>(name.front())) == 0 && name.front() != '_' && name.front() != ':') {
      fail("found {} in {}; a name begins with a letter or a digit; expected a list such as {}", quote(name),
           quote(whole), example);
    }
    if (name.size() > max_name_length) {
      fail("found {}; a name of more than {} letters overflows NCCL's buffer", quote(name), max_name_length);
    }
    check(name, whole);
    if (!seen.insert(name).second) fail("found {} twice in {}; write it once", quote(name), quote(whole));
    if (seen.size() > 1) out += ',';
    out += name;
  }
  if (seen.size() > max_names) {
    fail("found {} names; NCCL reads the first {} and drops the others", seen.size(), max_names);
  }
  return out;
}

}  // namespace

std::optional<std::int64_t> parse_integer(std::string_view text) {
  std::string_view digits = text;
  const bool negative = digits.starts_with('-');
  if (negative) digits.remove_prefix(1);
  const bool hexadecimal = digits.starts_with("0x") || digits.starts_with("0X");
  if (hexadecimal) digits.remove_prefix(2);
  // A leading zero would make it octal for NCCL.
  if (!hexadecimal && digits.size() > 1 && digits.front() == '0') return std::nullopt;
  std::int64_t value = 0;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), value, hexadecimal ? 16 : 10);
  if (error != std::errc() || end != digits.data() + digits.size() || digits.front() == '-') return std::nullopt;
  return negative ? -value : value;
}

std::string misread_as(std::string_view text) {
  if (text.empty()) return "NCCL would use its default";
  errno = 0;
  const std::int64_t value = std::strtoll(std::string(text).c_str(), nullptr, 0);
  if (errno != 0) return "this does not fit in 64 bits, so NCCL would use its default";
  return fmt::format("NCCL expects a plain whole number and would silently read this as {}", value);
}

std::string canonical_integer(std::string_view text, std::int64_t low, std::int64_t high) {
  const std::string_view whole = trim(text);
  if (is_default(whole)) return "default";
  const std::string allowed = fmt::format("{} to {}", low, high);
  const std::int64_t value = checked_integer(whole, allowed);
  if (value < low || value > high) fail("found {}; allowed: default, {}", value, allowed);
  return std::to_string(value);
}

std::string canonical_choice(std::string_view text, std::span<const std::int64_t> choices) {
  const std::string_view whole = trim(text);
  if (is_default(whole)) return "default";
  const std::string allowed = fmt::format("{}", fmt::join(choices, ", "));
  const std::int64_t value = checked_integer(whole, allowed);
  if (std::ranges::find(choices, value) == choices.end()) fail("found {}; allowed: default, {}", value, allowed);
  return std::to_string(value);
}

std::string canonical_flag(std::string_view text, bool as_number) {
  const std::string_view word = trim(text);
  if (is_default(word)) return "default";
  if (as_number && (word == "0" || word == "1")) return word == "1" ? "true" : "false";
  try {
    return parse_bool(word) ? "true" : "false";
  } catch (const Error&) {
    fail("found {}; allowed: default, true, false", quote(word));
  }
}

std::string canonical_bytes(std::string_view text, std::int64_t low, std::int64_t high) {
  const std::string_view whole = trim(text);
  if (is_default(whole)) return "default";
  const std::int64_t bytes = checked_bytes(whole);
  const std::string allowed =
      fmt::format("default, a power of two from {} to {}", print_bytes_exact(low), print_bytes_exact(high));
  if (bytes < low || bytes > high) fail("found {}; allowed: {}", quote(whole), allowed);
  if (!std::has_single_bit(static_cast<std::uint64_t>(bytes))) {
    const auto below = static_cast<std::int64_t>(std::bit_floor(static_cast<std::uint64_t>(bytes)));
    fail(
        "found {}, which is {} bytes and not a power of two: NCCL does not check this, and its results can be wrong "
        "(NCCL issue 698). Allowed: {}, such as {} or {}",
        quote(whole), bytes, allowed, print_bytes_exact(below), print_bytes_exact(std::min(high, 2 * below)));
  }
  return print_bytes_exact(bytes);
}

std::string canonical_level(std::string_view text) {
  // From near to far, as NCCL orders them (topoPathTypeStr, src/graph/topo.cc).
  static const std::vector<std::string> levels{"LOC", "NVL", "NVB", "C2C", "PIX", "PXB", "P2C", "PXN", "PHB", "SYS"};
  const std::string_view whole = trim(text);
  if (is_default(whole)) return "default";
  for (const std::string& level : levels) {
    if (lower(level) == lower(whole)) return level;
  }
  if (parse_integer(whole)) {
    fail("found {}; NCCL's numbers for levels follow an older scale (5 is SYS, not PXB). Allowed: default, {}",
         quote(whole), join(levels, ", "));
  }
  std::string upper(whole);
  std::ranges::transform(upper, upper.begin(), [](unsigned char c) { return static_cast<char>(std::toupper(c)); });
  fail("found {}, which NCCL would silently ignore; allowed: default, {}{}", quote(whole), join(levels, ", "),
       did_you_mean(nearest(upper, levels)));
}

std::string canonical_hca(std::string_view text) {
  constexpr std::size_t max_names = 32;  // MAX_IB_DEVS
  constexpr std::string_view example = "mlx5_0,mlx5_1 or ^=mlx5_4:1";
  return canonical_list(text, max_names, example, [&](std::string_view name, std::string_view whole) {
    const std::size_t colon = name.find(':');
    if (colon == 0) {
      fail("found {} without a device in {}; expected a list such as {}", quote(name), quote(whole), example);
    }
    if (colon == std::string_view::npos) return;
    const auto port = parse_integer(name.substr(colon + 1));
    if (!port || *port < 1 || *port > 255) {
      fail("found {} in {}; a port after ':' is a number from 1 to 255", quote(name), quote(whole));
    }
  });
}

std::string canonical_interfaces(std::string_view text) {
  constexpr std::size_t max_names = 16;  // MAX_IFS
  constexpr std::string_view example = "eth0,ib or ^docker,lo";
  return canonical_list(text, max_names, example, [&](std::string_view name, std::string_view whole) {
    if (name.size() < 2) {
      fail("found {} in {}; NCCL silently ignores a name of one letter; expected a list such as {}", quote(name),
           quote(whole), example);
    }
    if (name.find_first_of(":/") != std::string_view::npos) {
      fail("found {} in {}; the name of an interface has no ':' or '/' (NCCL would cut it off there)", quote(name),
           quote(whole));
    }
  });
}

}  // namespace harness::nccl
