#include "machine/proc.h"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <system_error>

#include "base/text.h"
#include "machine/tree.h"

namespace harness::machine {

std::string_view take_line(std::string_view& text) {
  const std::size_t end = text.find('\n');
  const std::string_view line = text.substr(0, end);
  text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
  return line;
}

std::string_view take_word(std::string_view& text) {
  const std::size_t start = std::min(text.find_first_not_of(" \t"), text.size());
  text.remove_prefix(start);
  const std::size_t end = std::min(text.find_first_of(" \t"), text.size());
  const std::string_view word = text.substr(0, end);
  text.remove_prefix(end);
  return word;
}

std::optional<double> number(std::string_view word) {
  const auto value = number_in<double>(word);
  return value && std::isfinite(*value) && *value >= 0 ? value : std::nullopt;
}

std::string value_of(std::string_view text, std::string_view key) {
  while (!text.empty()) {
    const std::string_view line = take_line(text);
    const std::size_t colon = line.find(':');
    if (!line.starts_with(key) || colon == std::string_view::npos) continue;
    return std::string(line.substr(std::min(line.find_first_not_of(" \t", colon + 1), line.size())));
  }
  return "";
}

std::string port_state_in(std::string_view text) {
  const std::size_t colon = text.find(':');
  return std::string(trim(colon == std::string_view::npos ? text : text.substr(colon + 1)));
}

double port_rate_in(std::string_view text) {
  constexpr double unknown = std::numeric_limits<double>::quiet_NaN(), giga = 1e9;
  const std::optional<double> rate = number(take_word(text));
  return rate && take_word(text) == "Gb/sec" ? *rate * giga : unknown;
}

std::string host_name() {
  std::array<char, 256> name{};
  ::gethostname(name.data(), name.size() - 1);
  return name.data();
}

std::string process_space(const std::filesystem::path& root) {
  std::error_code ignored;
  const std::string boot = Tree(root).line("proc/sys/kernel/random/boot_id").text;
  const std::string space = std::filesystem::read_symlink(root / "proc/self/ns/pid", ignored);
  return boot.empty() || space.empty() ? "" : boot + " " + space;
}

// Fields 3 and 22. The second field, a name in brackets, may hold anything.
ProcessState process_state(std::string_view proc_pid_stat) {
  const std::size_t end_of_name = proc_pid_stat.rfind(')');
  if (end_of_name == std::string_view::npos) return {};
  std::string_view rest = proc_pid_stat.substr(end_of_name + 1);
  const std::string_view state = take_word(rest);
  for (int field = 4; field < 22; ++field) take_word(rest);
  const std::optional<double> start = number(take_word(rest));
  if (!start) return {};
  return {static_cast<std::int64_t>(*start), state == "Z" || state == "X"};
}

ProcessState state_of_process(std::int64_t pid, const std::filesystem::path& root) {
  return process_state(Tree(root).bytes("proc/" + std::to_string(pid) + "/stat").text);
}

}  // namespace harness::machine
