#include "launch/kernel_text.h"

#include <algorithm>
#include <charconv>
#include <fstream>
#include <limits>
#include <optional>
#include <sstream>

namespace harness::launch {
namespace {

constexpr double nan = std::numeric_limits<double>::quiet_NaN();

// The next word, taken off `text`; empty at its end.
std::string_view take_word(std::string_view& text) {
  const std::size_t start = std::min(text.find_first_not_of(" \t"), text.size());
  text.remove_prefix(start);
  const std::size_t end = std::min(text.find_first_of(" \t"), text.size());
  const std::string_view word = text.substr(0, end);
  text.remove_prefix(end);
  return word;
}

std::string_view take_line(std::string_view& text) {
  const std::size_t end = text.find('\n');
  const std::string_view line = text.substr(0, end);
  text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
  return line;
}

std::optional<double> number(std::string_view word) {
  double value = 0;
  const auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), value);
  if (error != std::errc() || end != word.data() + word.size() || !(value >= 0)) return {};
  return value;
}

// "cpu12" as 12; nothing for "cpu", the sum of all, and for other lines.
std::optional<std::size_t> cpu_of(std::string_view word) {
  if (!word.starts_with("cpu")) return {};
  word.remove_prefix(3);
  std::size_t cpu = 0;
  const auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), cpu);
  if (word.empty() || error != std::errc() || end != word.data() + word.size()) return {};
  return cpu;
}

}  // namespace

std::string kernel_text(const std::filesystem::path& path) {
  std::ifstream in(path);
  std::ostringstream text;
  text << in.rdbuf();
  return text.str();
}

CpuTimes cpu_times(std::string_view proc_stat, const CpuSet& cpus, double ticks_per_s) {
  // user nice system idle iowait irq softirq steal; what follows (guest) is part of user and nice.
  constexpr std::size_t idle = 3, iowait = 4, steal = 7, columns = 8;
  CpuTimes times;
  std::size_t found = 0;
  while (!proc_stat.empty()) {
    std::string_view line = take_line(proc_stat);
    const std::optional<std::size_t> cpu = cpu_of(take_word(line));
    if (!cpu || *cpu >= cpus.size() || !cpus[*cpu]) continue;
    ++found;
    for (std::size_t column = 0; column < columns; ++column) {
      const double seconds = number(take_word(line)).value_or(nan) / ticks_per_s;
      times.all_s += seconds;
      if (column == steal) {
        times.steal_s += seconds;
      } else if (column != idle && column != iowait) {
        times.busy_s += seconds;
      }
    }
  }
  if (found == 0 || found != cpus.count()) return {nan, nan, nan};
  return times;
}

double load_of_last_minute(std::string_view proc_loadavg) {
  return number(take_word(proc_loadavg)).value_or(nan);
}

double clock_hz(std::string_view scaling_cur_freq) {
  std::string_view line = take_line(scaling_cur_freq);
  return 1e3 * number(take_word(line)).value_or(nan);
}

}  // namespace harness::launch
