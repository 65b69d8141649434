#include "cli/view.h"

#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <iostream>
#include <set>

#include "base/error.h"
#include "base/units.h"
#include "report/terminal.h"

namespace harness::cli {
namespace {

std::string environment(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? "" : value;
}

bool writes_to_a_terminal(const std::ostream& out) {
  return behind(out).rdbuf() == std::cout.rdbuf() && isatty(STDOUT_FILENO) == 1;
}

// 0: no limit.
std::size_t width_of(const std::ostream& out) {
  winsize size{};
  if (writes_to_a_terminal(out) && ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0) return size.ws_col;
  try {
    const std::int64_t columns = parse_integer(environment("COLUMNS"));
    return columns > 0 ? static_cast<std::size_t>(columns) : 0;
  } catch (const Error&) {  // not set, or not by a terminal
    return 0;
  }
}

bool in_color(const std::string& asked, const std::ostream& out) {
  if (asked != "auto") return asked == "always";
  return is_terminal(out) && environment("NO_COLOR").empty();
}

}  // namespace

bool is_terminal(const std::ostream& out) {
  return writes_to_a_terminal(out) && environment("TERM") != "dumb";
}

TerminalText view(report::Document document, const ViewOptions& options, const std::ostream& out) {
  constexpr std::size_t least_prose = 40, most_prose = 120;  // columns: narrower or wider is hard to read
  const std::size_t width = width_of(out);
  report::arrange(document, {width, options.columns, options.sort});
  return {report::write_text(document, width == 0 ? most_prose : std::clamp(width, least_prose, most_prose),
                             in_color(options.color, out))};
}

std::vector<std::string> labels_of(const std::vector<std::string>& paths) {
  std::vector<std::string> names;
  for (const auto& path : paths) names.push_back(std::filesystem::path(path).filename().string());
  const std::set<std::string> unique(names.begin(), names.end()), unique_paths(paths.begin(), paths.end());
  return unique.size() == unique_paths.size() ? names : paths;
}

}  // namespace harness::cli
