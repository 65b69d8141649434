#include <algorithm>
#include <array>
#include <cmath>

#include "base/text.h"
#include "base/units.h"
#include "evidence/input.h"

namespace harness::evidence {
namespace {

// Consumes a launcher's mark at the beginning of a line, the blanks before it and one after it. '#' in `shape` matches
// at most seven digits.
bool take_mark(Cursor& c, std::string_view shape) {
  Cursor at = c;
  at.skip_blanks();
  for (const char expected : shape) {
    constexpr std::size_t longest = 7;
    const std::size_t digits = std::min(at.rest.find_first_not_of("0123456789"), at.rest.size());
    if (expected == '#' ? digits == 0 || digits > longest : !at.rest.starts_with(expected)) return false;
    at.rest.remove_prefix(expected == '#' ? digits : 1);
  }
  at.literal(" ");
  c = at;
  return true;
}

// "[0] NCCL INFO …", "[0] net_ib.cc:9 NCCL WARN …": NCCL's own prefix without its host, and no launcher's mark.
bool is_of_nccl(Cursor c) {
  if (!take_mark(c, "[#] ")) return false;
  const std::vector<std::string_view> words = words_of(c.rest, 3);
  const std::size_t nccl = words.size() > 2 && words[0] != "NCCL" ? 1 : 0;
  return words.size() > nccl + 1 && words[nccl] == "NCCL" && is_one_of("INFO|WARN", words[nccl + 1]);
}

// "(RayTrainWorker pid=1234, ip=10.0.0.1) "
bool take_ray(Cursor& c) {
  if (!c.rest.starts_with('(')) return false;
  const std::size_t end = c.rest.find(") ");
  if (end == std::string_view::npos || c.rest.substr(0, end).find(" pid=") == std::string_view::npos) return false;
  c.rest.remove_prefix(end + 2);
  return true;
}

// "[pod/launcher-0/mpi] " (kubectl logs --prefix)
bool take_pod(Cursor& c) {
  return c.rest.starts_with("[pod/") && c.after("] ");
}

// "2024-12-04T05:27:39.074Z ", "2024-12-04 05:27:39,074 ", also between bars.
bool take_time(Cursor& c) {
  Cursor at = c;
  at.skip_blanks();
  const bool barred = at.literal("| ");
  constexpr std::size_t shortest = 19;
  const std::string_view time = at.rest.substr(0, shortest);
  if (time.size() < shortest || time[4] != '-' || time[7] != '-' || time[13] != ':' || time[16] != ':') return false;
  if (time[10] != 'T' && time[10] != ' ') return false;
  if (!is_digit(time[0]) || !is_digit(time[5]) || !is_digit(time[18])) return false;
  at.rest.remove_prefix(shortest);
  at.word();
  if (!at.literal(" ")) return false;
  if (barred) at.literal("| ");
  c = at;
  return true;
}

// "node17: " (pdsh), "worker-0  | " (docker compose) before a line of nccl-tests; all other output is found with the
// prefix in place.
bool take_host(Cursor& c) {
  const std::size_t mark = std::min(c.rest.find(": "), c.rest.find("| "));
  if (mark == 0 || mark == std::string_view::npos || mark > 64 || !has_only(trim(c.rest.substr(0, mark)), ".-_"))
    return false;
  const std::string_view rest = c.rest.substr(mark + 2);
  const std::size_t first = rest.find_first_not_of(' ');
  if (first == std::string_view::npos) return false;
  constexpr std::size_t columns_of_a_row = 8;
  const std::vector<std::string_view> words = words_of(rest, columns_of_a_row);  // a row: size, count, …
  const bool is_row = words.size() == columns_of_a_row && is_digit(words[0].front()) && is_digit(words[1].front());
  if (rest[first] != '#' && !is_row) return false;
  if (words_of(rest.substr(first), 2).front().ends_with(':')) return false;
  c.rest = rest;
  return true;
}

// Returns the text before Ray's "[repeated 15x across cluster]", behind which it explains itself once.
std::string_view before_repeats(std::string_view text) {
  constexpr std::string_view mark = " [repeated ";
  const std::size_t at = text.rfind(mark);
  if (at == std::string_view::npos) return text;
  Cursor c{text.substr(at + mark.size())};
  std::int64_t count = 0;
  return c.integer(count) && c.literal("x across cluster]") ? text.substr(0, at) : text;
}

// Takes a type, an operation or a root of nccl-tests. NCCL's host may follow without a blank: "sumn1:20:21".
bool take_column(Cursor& c) {
  static constexpr std::array<std::string_view, 18> names = {"int8",   "int32", "int64", "int",   "uint8",  "uint32",
                                                             "uint64", "char",  "half",  "float", "double", "bfloat16",
                                                             "sum",    "prod",  "max",   "min",   "avg",    "mulsum"};
  Cursor at = c;
  at.skip_blanks();
  if (at.rest.size() == c.rest.size()) return false;
  std::int64_t root = 0;
  if (!std::ranges::any_of(names, [&](std::string_view name) { return at.literal(name); }) && !at.integer(root))
    return false;
  c = at;
  return true;
}

}  // namespace

Line without_prefixes(std::string_view text, std::int64_t number) {
  static constexpr std::array<std::string_view, 8> marks{
      "[rank#]:", "[default#]:", "[#,#]<stdout>:", "[#,#]<stderr>:", "#: ", "[#] ", "stdout F ", "stderr F "};
  Cursor c{text};
  constexpr int most = 8;
  for (int i = 0; i < most && !is_of_nccl(c); ++i) {
    if (!(std::ranges::any_of(marks, [&](std::string_view mark) { return take_mark(c, mark); }) || take_ray(c) ||
          take_pod(c) || take_time(c) || take_host(c)))
      break;
  }
  const std::string_view bare = before_repeats(c.rest);
  return {bare, number, bare.size() < c.rest.size()};
}

std::string without_inner_prefixes(std::string_view text) {
  std::string out;
  for (Cursor c{text}; !c.rest.empty();) {
    out += c.until("[");
    if (!c.after("]")) return out += c.rest;
    if (!c.literal("<stdout>:")) c.literal("<stderr>:");
    out += ' ';
  }
  return out;
}

// A row begins with "size count type redop root", up to 2.12 with those of them that its collective has; then come
// "time algbw busbw #wrong", twice.
std::size_t row_part_in(std::string_view text) {
  Cursor c{text};
  const auto next = [&] {
    c.skip_blanks();
    return c.word();
  };
  if (!as_number(next()) || !as_number(next())) return 0;
  const Cursor names = c;
  const bool is_measurement = as_number(next()).has_value();
  if (!is_measurement) next();
  c.skip_blanks();
  std::int64_t last = 0;
  if (c.integer(last)) {
    if (c.literal("e-") || c.literal("e+")) c.integer(last);  // a difference, up to 2.12: "5e-07"
  } else if (is_measurement) {
    return 0;
  } else {
    c = names;
    while (take_column(c)) {
    }
    if (c.rest.size() == names.rest.size()) return 0;
  }
  return text.size() - c.rest.size();
}

bool is_one_of(std::string_view names, std::string_view word) {
  while (!word.empty() && !names.empty()) {
    const std::size_t end = std::min(names.find('|'), names.size());
    if (names.substr(0, end) == word) return true;
    names.remove_prefix(std::min(end + 1, names.size()));
  }
  return false;
}

std::optional<std::string> mapped(std::string_view pairs, std::string_view word) {
  if (pairs.empty()) return std::string(word);
  for (const std::string_view pair : split(pairs, '|')) {
    const std::size_t equals = pair.find('=');
    if (pair.substr(0, equals) == word) return std::string(pair.substr(equals + 1));
  }
  return std::nullopt;
}

bool has_all(std::string_view text, std::string_view parts) {
  for (Cursor c{parts}; !c.rest.empty(); c.literal("&")) {
    const std::string_view part = c.until("&");
    const bool absent = part.starts_with('!');
    if (contains(text, part.substr(absent ? 1 : 0)) == absent) return false;
  }
  return true;
}

bool has_any(std::string_view text, std::string_view parts) {
  return std::ranges::any_of(split(parts, '|'), [&](std::string_view part) { return contains(text, part); });
}

bool begins_with(std::string_view text, std::string_view parts) {
  return std::ranges::any_of(split(parts, '|'), [&](std::string_view part) { return text.starts_with(part); });
}

void add_once(std::vector<std::string>& to, std::string text) {
  if (std::ranges::find(to, text) == to.end()) to.push_back(std::move(text));
}

void set_last(NameValues& values, const std::string& name, std::string value) {
  std::erase_if(values, [&](const auto& entry) { return entry.first == name; });
  values.emplace_back(name, std::move(value));
}

std::string_view unquoted(std::string_view value) {
  value = trim(value);
  for (const char quote : {'"', '\''}) {
    if (value.size() >= 2 && value.front() == quote && value.back() == quote) return value.substr(1, value.size() - 2);
  }
  return value;
}

std::optional<double> as_number(std::string_view text) {
  text = trim(text);
  if (text.starts_with('+')) text.remove_prefix(1);
  const auto value = number_in<double>(text);
  return value && std::isfinite(*value) ? value : std::nullopt;
}

std::optional<double> number_after(std::string_view text, std::string_view label) {
  const std::size_t at = text.find(label);
  if (at == std::string_view::npos) return std::nullopt;
  text.remove_prefix(at + label.size());
  text.remove_prefix(std::min(text.find_first_not_of(" \t'\""), text.size()));
  std::string digits;
  constexpr std::size_t longest = 40;
  for (const char c : text.substr(0, longest)) {
    const bool exponent = (c == 'e' || c == 'E') && !digits.empty() && is_digit(digits.back());
    const bool sign = (c == '-' || c == '+') && (digits.empty() || digits.back() == 'e');
    if (is_digit(c) || c == '.' || sign) {
      digits += c;
    } else if (exponent) {
      digits += 'e';
    } else if (c != ',' || digits.empty()) {
      break;
    }
  }
  while (!digits.empty() && !is_digit(digits.back())) digits.pop_back();  // "step 1." ends a sentence
  return as_number(digits);
}

std::optional<std::int64_t> integer_after(std::string_view text, std::string_view label) {
  const auto value = number_after(text, label);
  constexpr double most = 1e15;
  if (!value || std::abs(*value) > most || *value != std::floor(*value)) return std::nullopt;
  return static_cast<std::int64_t>(*value);
}

std::vector<std::string_view> words_of(std::string_view text, std::size_t most) {
  std::vector<std::string_view> words;
  while (words.size() < most) {
    const std::size_t first = text.find_first_not_of(" \t");
    if (first == std::string_view::npos) break;
    text.remove_prefix(first);
    words.push_back(text.substr(0, text.find_first_of(" \t")));
    text.remove_prefix(words.back().size());
  }
  return words;
}

bool is_of_interest(std::string_view entry) {
  return begins_with(entry,
                     "NCCL_|RCCL_|CUDA_|TORCH_|NVTE_|PYTORCH_|OMP_|FI_|OFI_|UCX_|SHARP|GLOO_|MASTER_|SLURM_N|HSA_|HIP_|"
                     "OMPI_MCA_btl");
}

std::string times(std::int64_t n) {
  if (n == 1) return "once";
  return n == 2 ? "twice" : fmt::format("{} times", n);
}

std::string and_list(const std::vector<std::string>& parts) {
  if (parts.empty()) return "";
  std::string text = parts.front();
  for (std::size_t i = 1; i < parts.size(); ++i) text += (i + 1 == parts.size() ? " and " : ", ") + parts[i];
  return text;
}

std::string some_of(const std::vector<std::string>& parts) {
  constexpr std::size_t most = 4;
  return parts.size() > most ? join_first(parts, most) : and_list(parts);
}

std::string seconds_text(double seconds) {
  if (seconds >= 1000) return fmt::format("{:.0f} s", seconds);
  if (seconds >= 1) return fmt::format("{:.2f} s", seconds);
  return seconds >= 1e-3 ? fmt::format("{:.1f} ms", seconds * 1e3) : fmt::format("{:.2f} us", seconds * 1e6);
}

std::string size_option(std::int64_t bytes) {
  return replaced(print_bytes_exact(bytes), {{' ', ""}});
}

Json parse_json(const std::string& text, std::string_view skipped) {
  constexpr int deepest = 64;
  constexpr std::size_t most_values = 1'000'000;
  std::size_t values = 0;
  const auto keep = [&](int depth, Json::parse_event_t event, Json& value) {
    if (depth > deepest) fail("it is nested more than {} levels deep", deepest);
    if (++values > most_values) fail("it holds more than a million values");
    return event != Json::parse_event_t::key || skipped.empty() || value != skipped;
  };
  try {
    constexpr bool throws = true, takes_comments = true;  // comments occur in DeepSpeed configurations
    return Json::parse(text, keep, throws, takes_comments);
  } catch (const Json::parse_error& error) {
    fail("it is no JSON from byte {} on", error.byte);
  } catch (const Json::exception&) {
    fail("it holds a number that no computer keeps");
  }
}

const Json& at(const Json& object, const char* key) {
  static const Json none;
  if (!object.is_object()) return none;
  const auto found = object.find(key);
  return found == object.end() ? none : *found;
}

std::string text_at(const Json& object, const char* key) {
  const Json& value = at(object, key);
  if (value.is_string()) return value.get<std::string>();
  return value.is_number() || value.is_boolean() ? value.dump() : std::string();
}

std::int64_t integer_at(const Json& object, const char* key) {
  return static_cast<std::int64_t>(std::clamp(number_at(object, key, -1), -1.0, 1e18));
}

double number_at(const Json& object, const char* key, double otherwise) {
  const Json& value = at(object, key);
  if (value.is_number()) return value.get<double>();
  return value.is_string() ? as_number(value.get_ref<const std::string&>()).value_or(otherwise) : otherwise;
}

}  // namespace harness::evidence
