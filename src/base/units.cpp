#include "base/units.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <initializer_list>
#include <span>
#include <utility>
#include <vector>

#include "base/text.h"

namespace harness {
namespace {

struct Unit {
  std::string_view name;
  double factor;
};

constexpr std::array<Unit, 9> byte_units{{{"B", 1},
                                          {"MB", 1e6},
                                          {"GB", 1e9},
                                          {"kB", 1e3},
                                          {"TB", 1e12},
                                          {"KiB", 1024.0},
                                          {"MiB", 1048576.0},
                                          {"GiB", 1073741824.0},
                                          {"TiB", 1099511627776.0}}};
constexpr std::array<Unit, 8> second_units{
    {{"s", 1}, {"ms", 1e-3}, {"us", 1e-6}, {"µs", 1e-6}, {"ns", 1e-9}, {"min", 60}, {"h", 3600}, {"d", 86400}}};
constexpr std::array<Unit, 1> share_units{{{"%", 0.01}}};
constexpr std::array<Unit, 12> flop_units{{{"FLOP/s", 1},
                                           {"MFLOP/s", 1e6},
                                           {"GFLOP/s", 1e9},
                                           {"TFLOP/s", 1e12},
                                           {"PFLOP/s", 1e15},
                                           {"EFLOP/s", 1e18},
                                           {"FLOPS", 1},
                                           {"MFLOPS", 1e6},
                                           {"GFLOPS", 1e9},
                                           {"TFLOPS", 1e12},
                                           {"PFLOPS", 1e15},
                                           {"EFLOPS", 1e18}}};

// The units in which links are sold. Case matters: 1 GB/s is 8 Gb/s.
constexpr std::array<Unit, 21> rate_units{{{"B/s", 1},           {"kB/s", 1e3},           {"MB/s", 1e6},
                                           {"GB/s", 1e9},        {"TB/s", 1e12},          {"KiB/s", 1024.0},
                                           {"MiB/s", 1048576.0}, {"GiB/s", 1073741824.0}, {"TiB/s", 1099511627776.0},
                                           {"kbit/s", 1e3 / 8},  {"Mbit/s", 1e6 / 8},     {"Gbit/s", 1e9 / 8},
                                           {"Tbit/s", 1e12 / 8}, {"kb/s", 1e3 / 8},       {"Mb/s", 1e6 / 8},
                                           {"Gb/s", 1e9 / 8},    {"Tb/s", 1e12 / 8},      {"kbps", 1e3 / 8},
                                           {"Mbps", 1e6 / 8},    {"Gbps", 1e9 / 8},       {"Tbps", 1e12 / 8}}};

// Suggests the units that may have been meant. If only the case differs, it may be any of them: 1 GB/s is 8 Gb/s. For
// the same reason, no other slip in bits or bytes is corrected. "4M" is MiB, not the B that is nearer by edit distance.
std::string nearest_unit(std::string_view unit, std::span<const Unit> units) {
  std::vector<std::string> alike, names;
  std::string begins_alike;
  for (const Unit& u : units) {
    names.emplace_back(u.name);
    if (same_word(u.name, unit)) alike.emplace_back(u.name);
    if (same_word(u.name.substr(0, 1), unit)) begins_alike = u.name;
  }
  if (!alike.empty()) return join(alike, " or ");
  if (unit.size() == 1) return begins_alike;
  return harness::lower(unit).find('b') == std::string::npos ? nearest(unit, names) : "";
}

// A number, as written and as a value, and the factor of its unit.
struct Quantity {
  std::string_view number;
  double value;
  double factor;
};

// `bare`: the factor without a unit. `what`: "a size is a number with a unit, such as 25 MiB".
Quantity parse_quantity(std::string_view text, std::span<const Unit> units, double bare, std::string_view what) {
  const std::string_view whole = trim(text);
  // "1e12" is a number, the "E" of "1 EFLOP/s" is not an exponent: take the longest prefix that is a number.
  double value = 0;
  const auto [end, error] = std::from_chars(whole.data(), whole.data() + whole.size(), value);
  if (error != std::errc() || !std::isfinite(value)) fail("found {}; {}", quote(whole), what);
  if (value == 0) value = 0;  // "-0" is the same number, and prints alike
  const std::size_t digits = end - whole.data();
  const std::string_view unit = trim(whole.substr(digits));
  if (unit.empty()) return {whole.substr(0, digits), value, bare};
  for (const Unit& u : units) {
    if (u.name == unit) return {whole.substr(0, digits), value, u.factor};
  }
  std::vector<std::string> names;
  for (const Unit& u : units) names.emplace_back(u.name);
  fail("found {}, unknown unit {}; units: {}{}", quote(whole), quote(unit), join(names, ", "),
       did_you_mean(nearest_unit(unit, units)));
}

// Prints three significant digits, never in exponent form, without needless decimals ("512", not "512.0").
std::string three_digits(double value) {
  const double size = std::fabs(value);
  if (value == std::floor(value) && size < 1000) return fmt::format("{:.0f}", value);
  if (size < 9.995) return fmt::format("{:.2f}", value);
  if (size < 99.95) return fmt::format("{:.1f}", value);
  return fmt::format("{:.0f}", value);
}

// Scales by powers of `step`, so that the printed number is below `step`.
std::string show_scaled(double value, double step, std::span<const char* const> units) {
  if (!std::isfinite(value)) return "-";
  std::size_t i = 0;
  while (i + 1 < units.size() && std::round(std::fabs(value)) >= step) {
    value /= step;
    ++i;
  }
  const std::string number = three_digits(value);
  return *units[i] == '\0' ? number : number + " " + units[i];
}

// Prints in the first of the units, from large to small, in which the value is 1 or more and few digits read back as
// exactly the same value; else in the base unit.
std::string print_exact(double value, std::string_view base, std::initializer_list<std::string_view> units,
                        double (*parse)(std::string_view)) {
  for (const std::string_view unit : units) {
    const double in_unit = value / parse(fmt::format("1 {}", unit));
    std::string text = fmt::format("{:.9g} {}", in_unit, unit);
    if (in_unit >= 1 && parse(text) == value) return text;
  }
  return fmt::format("{} {}", value, base);
}

}  // namespace

std::int64_t parse_integer(std::string_view text) {
  const std::string_view whole = trim(text);
  std::int64_t value = 0;
  const auto [end, error] = std::from_chars(whole.data(), whole.data() + whole.size(), value);
  if (error == std::errc::result_out_of_range) fail("found {}; that is too large", quote(whole));
  if (error != std::errc() || end != whole.data() + whole.size()) {
    fail("found {}; expected a whole number, such as 4", quote(whole));
  }
  return value;
}

double parse_real(std::string_view text) {
  const auto value = number_in<double>(trim(text));
  if (!value || !std::isfinite(*value)) fail("found {}; expected a number, such as 0.5", quote(trim(text)));
  return *value == 0 ? 0 : *value;  // "-0"
}

bool parse_bool(std::string_view text) {
  const std::string word = lower(trim(text));
  if (word == "true" || word == "on" || word == "yes") return true;
  if (word == "false" || word == "off" || word == "no") return false;
  const std::vector<std::string> words{"true", "false"};
  fail("found {}; allowed: true, false (or on, off, yes, no){}", quote(trim(text)), did_you_mean(nearest(word, words)));
}

std::int64_t parse_bytes(std::string_view text) {
  const Quantity q = parse_quantity(text, byte_units, 1, "a size is a number with a unit, such as 25 MiB");
  if (q.value < 0) fail("found {}; a size is not negative", quote(trim(text)));
  if (const auto whole = number_in<std::int64_t>(q.number)) {  // exact beyond 2^53
    std::int64_t bytes = 0;
    if (__builtin_mul_overflow(*whole, static_cast<std::int64_t>(q.factor), &bytes)) {
      fail("found {}; that is too large", quote(trim(text)));
    }
    return bytes;
  }
  const double bytes = q.value * q.factor;
  if (bytes >= 9.2e18) fail("found {}; that is too large", quote(trim(text)));
  const double rounded = std::nearbyint(bytes);
  // 0.1 GB is 1e8 bytes though 0.1 is not a binary fraction; 0.3 B is no number of bytes.
  if (std::fabs(bytes - rounded) > 1e-9 * rounded) fail("found {}; that is not a whole number of bytes", quote(text));
  return static_cast<std::int64_t>(rounded);
}

double parse_bandwidth(std::string_view text) {
  text = trim(text);
  const Quantity q = parse_quantity(text, rate_units, 0, "a bandwidth is a number with a unit, such as 3.35 TB/s");
  if (q.factor == 0)
    fail("found {}, which has no unit; expected a bandwidth such as 50 GB/s, which is 400 Gbit/s", quote(text));
  if (!(q.value > 0)) fail("found {}; allowed: a bandwidth above 0, such as 3.35 TB/s", quote(text));
  return q.value * q.factor;
}

double parse_seconds(std::string_view text) {
  const Quantity q = parse_quantity(text, second_units, 1, "a time is a number with a unit, such as 30 s or 10 min");
  constexpr double most_h = 1e6;  // keeps sums over times and over ranks finite
  const double seconds = q.value * q.factor;
  if (!(std::fabs(seconds) <= most_h * 3600)) fail("found {}; a time is at most {:g} h", quote(trim(text)), most_h);
  return seconds;
}

double parse_share(std::string_view text) {
  const Quantity q = parse_quantity(text, share_units, 1, "a share is written like 1 % or 0.01");
  return q.factor == 1 ? q.value : q.value / 100;  // 1 / 100 is nearer to 0.01 than 1 * 0.01 for some values
}

double parse_flops(std::string_view text) {
  const Quantity q = parse_quantity(text, flop_units, 1, "a rate is a number with a unit, such as 989 TFLOP/s");
  return q.value * q.factor;
}

std::string print_bytes_exact(std::int64_t bytes) {
  static constexpr std::array names{"B", "KiB", "MiB", "GiB", "TiB"};
  std::size_t i = 0;
  while (i + 1 < names.size() && bytes != 0 && bytes % 1024 == 0) {
    bytes /= 1024;
    ++i;
  }
  return fmt::format("{} {}", bytes, names[i]);
}

std::string print_share_exact(double share) {
  for (int digits = 6; digits <= 17; ++digits) {
    std::string text = fmt::format("{:.{}g} %", 100 * share, digits);
    if (parse_share(text) == share) return text;
  }
  return fmt::format("{}", share);
}

std::string print_bandwidth_exact(double bytes_per_s) {
  return print_exact(bytes_per_s, "B/s", {"TB/s", "GB/s", "MB/s", "kB/s"}, parse_bandwidth);
}

std::string print_seconds_exact(double seconds) {
  return print_exact(seconds, "s", {"s", "ms", "us", "ns"}, parse_seconds);
}

std::string show_bytes(double bytes) {
  static constexpr std::array units{"B", "KiB", "MiB", "GiB", "TiB", "PiB"};
  return show_scaled(bytes, 1024, units);
}

std::string show_seconds(double seconds) {
  if (!std::isfinite(seconds)) return "-";
  const double size = std::fabs(seconds);
  if (size >= 2 * 3600) return three_digits(seconds / 3600) + " h";
  if (size >= 2 * 60) return three_digits(seconds / 60) + " min";
  if (size >= 0.9995 || size == 0) return three_digits(seconds) + " s";
  static constexpr std::array units{"ns", "us", "ms"};
  return show_scaled(seconds * 1e9, 1000, units);
}

std::string show_flop(double flop) {
  static constexpr std::array units{"FLOP", "kFLOP", "MFLOP", "GFLOP", "TFLOP", "PFLOP", "EFLOP"};
  return show_scaled(flop, 1000, units);
}

std::string show_flops(double flops_per_second) {
  return show_flop(flops_per_second) + "/s";
}

std::string show_bandwidth(double bytes_per_s) {
  return fmt::format("{:.4g} GB/s", bytes_per_s / 1e9);
}

std::string clock_text(double unix_s) {
  constexpr double year_10000 = 253402300800;
  if (!(unix_s >= 0 && unix_s < year_10000)) return "?";
  const std::int64_t of_day = static_cast<std::int64_t>(unix_s) % 86400;
  return fmt::format("{:02}:{:02}:{:02}", of_day / 3600, of_day / 60 % 60, of_day % 60);
}

std::string percent(double share, int decimals) {
  return fmt::format("{:.{}f} %", 100 * share, decimals);
}

std::string signed_number(double value, int decimals) {
  const std::string text = fmt::format("{:+.{}f}", value, decimals);
  return text.find_first_of("123456789") == std::string::npos ? text.substr(1) : text;
}

std::string signed_percent(double share, int decimals) {
  return signed_number(100 * share, decimals) + " %";
}

std::string show_money(double amount, const std::string& currency) {
  const std::string digits = fmt::format("{:.{}f}", std::abs(amount), std::abs(amount) < 100 ? 2 : 0);
  const std::size_t whole = std::min(digits.find('.'), digits.size());
  std::string grouped;
  for (std::size_t i = 0; i < digits.size(); ++i) {
    if (i > 0 && i < whole && (whole - i) % 3 == 0) grouped += ',';
    grouped += digits[i];
  }
  return fmt::format("{}{} {}", amount < 0 ? "-" : "", grouped, currency);
}

std::string show_tokens(double tokens) {
  constexpr std::pair<double, const char*> scales[] = {{1e12, " trillion"}, {1e9, " billion"}, {1e6, " million"}};
  for (const auto& [scale, name] : scales) {
    if (tokens >= scale) return fmt::format("{:.4g}{} tokens", tokens / scale, name);
  }
  return fmt::format("{:.0f} tokens", tokens);
}

std::string show_duration(double seconds) {
  constexpr double day = 86400;
  return seconds >= 2 * day ? fmt::format("{:.1f} days", seconds / day) : show_seconds(seconds);
}

}  // namespace harness
