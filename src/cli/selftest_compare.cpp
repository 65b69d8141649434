#include "cli/selftest_compare.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <nlohmann/json.hpp>
#include <sstream>
#include <vector>

#include "base/error.h"
#include "base/file.h"
#include "base/units.h"
#include "report/table.h"

namespace harness::cli {
namespace {

using Json = nlohmann::ordered_json;

// The whole file is one object, or the last of its lines that tells of a performance.
Json read(const std::string& path) {
  constexpr std::size_t most_bytes = 16 << 20;
  std::istringstream text(read_file(path, most_bytes));
  const auto tells = [](const Json& j) { return j.is_object() && j.contains("performance"); };
  if (Json whole = Json::parse(text.str(), nullptr, false); tells(whole)) return whole;
  Json found;
  for (std::string line; std::getline(text, line);) {
    if (Json j = Json::parse(line, nullptr, false); tells(j)) found = std::move(j);
  }
  if (found.is_null()) fail("{} is no file that `selftest performance --json` wrote", path);
  return found;
}

double value(const Json& j, const char* key) {
  const auto it = j.find(key);
  return it != j.end() && it->is_number() ? it->get<double>() : std::nan("");
}

std::string change(double before, double after) {
  return before > 0 && std::isfinite(after) ? fmt::format("{:+.2f} %", 100 * (after / before - 1)) : "";
}

std::vector<report::Cell> row(const std::string& name, double before, double after, std::string (*show)(double)) {
  const auto text = [&](double x) { return std::isfinite(x) ? show(x) : std::string("unknown"); };
  return {name, text(before), text(after), change(before, after)};
}
std::string plain(double x) {
  return fmt::format("{:.0f}", x);
}
std::string megahertz(double x) {
  return fmt::format("{:.0f} MHz", x / 1e6);
}
std::string watts(double x) {
  return fmt::format("{:.0f} W", x);
}

std::string step_table(const Json& before, const Json& after) {
  report::Table table;
  table.columns = {{"step", true}, {"before"}, {"after"}, {"change"}};
  const auto add = [&](const char* name, const Json& a, const Json& b, const char* key, std::string (*show)(double)) {
    table.rows.push_back(row(name, value(a, key), value(b, key), show));
  };
  add("median", before, after, "median_seconds", show_seconds);
  add("first steps", before, after, "first_median_seconds", show_seconds);
  add("last steps", before, after, "last_median_seconds", show_seconds);
  add("tokens/s", before, after, "tokens_per_second", plain);
  add("MFU", before, after, "mfu", [](double share) { return percent(share, 2); });
  const Json nothing = Json::object(), a = before.value("device", nothing), b = after.value("device", nothing);
  add("SM clock", a, b, "mean_sm_clock_hz", megahertz);
  add("power", a, b, "mean_power_w", watts);
  return table.text();
}

struct Line {
  double before = 0, after = 0;  // seconds of the step
  double rate_before = 0, rate_after = 0;
  bool by_flop = false;
};

std::string lines_table(const Json& before, const Json& after) {
  std::map<std::array<std::string, 4>, Line> lines;
  const auto take = [&](const Json& from, double Line::*seconds, double Line::*rate) {
    for (const Json& j : from.value("lines", Json::array())) {
      const auto word = [&](const char* key) { return j.value(key, std::string()); };
      Line& line = lines[{word("what"), word("phase"), word("operation"), word("shape")}];
      line.*seconds = value(j, "seconds");
      line.*rate = value(j, "rate");
      line.by_flop = word("rate_unit") == "FLOP/s";
    }
  };
  take(before, &Line::before, &Line::rate_before);
  take(after, &Line::after, &Line::rate_after);
  std::vector<std::pair<std::array<std::string, 4>, Line>> sorted(lines.begin(), lines.end());
  std::ranges::stable_sort(sorted, std::greater<>(),
                           [](const auto& entry) { return std::abs(entry.second.after - entry.second.before); });
  report::Table table;
  table.columns = {{"line", true}, {"phase", true}, {"operation", true}, {"shape", true}, {"before"},
                   {"after"},      {"difference"},  {"change"},          {"rate before"}, {"rate after"}};
  const auto time = [](double x) { return x > 0 ? fmt::format("{:.3f} ms", 1e3 * x) : std::string("none"); };
  const auto rate = [](const Line& l, double x) {
    if (!(x > 0)) return std::string();
    return l.by_flop ? show_flops(x) : show_bytes(x) + "/s";
  };
  for (const auto& [key, l] : sorted) {
    table.rows.push_back({key[0], key[1], key[2], key[3], time(l.before), time(l.after),
                          fmt::format("{:+.3f} ms", 1e3 * (l.after - l.before)),
                          l.after > 0 ? change(l.before, l.after) : "", rate(l, l.rate_before), rate(l, l.rate_after)});
  }
  return lines.empty() ? "no step was profiled\n" : table.text();
}

std::string head(const char* which, const std::string& path, const Json& j) {
  return fmt::format("{}: {}: {}, {}, sequence {}, micro-batch {}\n", which, path,
                     j.value("performance", std::string()), j.value("precision", std::string()),
                     j.value("sequence", std::int64_t{0}), j.value("micro_batch", std::int64_t{0}));
}

}  // namespace

std::string compare_performance(const std::string& before, const std::string& after) {
  const Json a = read(before), b = read(after);
  return head("before", before, a) + head("after", after, b) + "\n" + step_table(a, b) + "\n" + lines_table(a, b);
}

}  // namespace harness::cli
