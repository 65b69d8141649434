#include "cli/view.h"

#include <fcntl.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <iostream>
#include <set>

#include "base/error.h"
#include "base/file.h"
#include "base/units.h"
#include "job/mpi/launcher.h"
#include "report/terminal.h"

namespace harness::cli {
namespace {

std::string environment(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? "" : value;
}

bool writes_to_stdout(const std::ostream& out) {
  return behind(out).rdbuf() == std::cout.rdbuf();
}

// 0: a terminal that does not say, or none.
std::size_t columns_behind(int descriptor) {
  winsize size{};
  return isatty(descriptor) == 1 && ioctl(descriptor, TIOCGWINSZ, &size) == 0 ? size.ws_col : 0;
}

// 0: no limit.
std::size_t width_of(const std::ostream& out) {
  if (writes_to_stdout(out)) {
    if (const auto columns = columns_of_terminal(STDOUT_FILENO)) return *columns;
  }
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
  return writes_to_stdout(out) && isatty(STDOUT_FILENO) == 1 && environment("TERM") != "dumb";
}

std::optional<std::size_t> columns_of_terminal(int descriptor) {
  if (const std::size_t columns = columns_behind(descriptor); columns > 0) return columns;
  if (!mpi::launcher_claim(mpi::own_environment)) return std::nullopt;
  // mpirun gives its ranks pipes, or a terminal without a size, and copies what comes to its own output.
  const std::string theirs = fmt::format("/proc/{}/fd/{}", getppid(), descriptor);
  std::error_code unreadable;
  const std::string name = std::filesystem::read_symlink(theirs, unreadable).string();
  if (unreadable || !(name.starts_with("/dev/pts/") || name.starts_with("/dev/tty"))) return std::nullopt;
  const Descriptor terminal(::open(name.c_str(), O_RDONLY | O_NOCTTY | O_CLOEXEC));
  if (!terminal) return std::nullopt;
  const std::size_t columns = columns_behind(terminal.number());
  return columns > 0 ? std::optional(columns) : std::nullopt;
}

TerminalText view(report::Document document, const ViewOptions& options, const std::ostream& out) {
  constexpr std::size_t least_prose = 40, most_prose = 120;  // columns: narrower or wider is hard to read
  const std::size_t width = width_of(out);
  report::arrange(document, {width, options.columns, options.sort});
  return {report::write_text(document, width == 0 ? most_prose : std::clamp(width, least_prose, most_prose),
                             in_color(options.color, out))};
}

void print(report::Document document, std::string_view format, const ViewOptions& options, std::ostream& out) {
  if (format == "md") {
    out << report::write_markdown(document);
  } else {
    out << view(std::move(document), options, out);
  }
}

std::vector<std::string> labels_of(const std::vector<std::string>& paths) {
  std::vector<std::string> names;
  for (const auto& path : paths) names.push_back(std::filesystem::path(path).filename().string());
  const std::set<std::string> unique(names.begin(), names.end()), unique_paths(paths.begin(), paths.end());
  return unique.size() == unique_paths.size() ? names : paths;
}

}  // namespace harness::cli
