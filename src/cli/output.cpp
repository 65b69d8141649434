#include "cli/output.h"

#include <fcntl.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <set>
#include <string_view>

#include "base/error.h"
#include "base/file.h"
#include "base/text.h"
#include "base/units.h"
#include "job/mpi/mpi_job.h"
#include "report/document.h"
#include "store/atomic_file.h"

namespace harness::cli {

bool CleanStream::Buffer::hand_on(std::size_t bytes) {
  to_ << escaped_lines(std::string_view(waiting_).substr(0, bytes));
  waiting_.erase(0, bytes);
  return static_cast<bool>(to_);
}

void CleanStream::Buffer::pass(const std::string& text) {
  hand_on(waiting_.size());
  to_ << text;
}

CleanStream::Buffer::int_type CleanStream::Buffer::overflow(int_type character) {
  if (traits_type::eq_int_type(character, traits_type::eof())) return traits_type::not_eof(character);
  const char byte = traits_type::to_char_type(character);
  return xsputn(&byte, 1) == 1 ? character : traits_type::eof();
}

std::streamsize CleanStream::Buffer::xsputn(const char* text, std::streamsize bytes) {
  waiting_.append(text, static_cast<std::size_t>(bytes));
  const std::size_t end = waiting_.rfind('\n');
  if (end != std::string::npos && !hand_on(end + 1)) return 0;
  return bytes;
}

int CleanStream::Buffer::sync() {
  return hand_on(waiting_.size()) && to_.flush() ? 0 : -1;
}

std::ostream& operator<<(std::ostream& out, const TerminalText& text) {
  auto* const clean = dynamic_cast<CleanStream*>(&out);
  if (clean == nullptr) return out << text.text;
  clean->buffer_.pass(text.text);
  return out;
}

const std::ostream& behind(const std::ostream& out) {
  const auto* const clean = dynamic_cast<const CleanStream*>(&out);
  return clean == nullptr ? out : clean->buffer_.to();
}

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
  report::arrange(document, {width, options.columns});
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
  if (unique.size() != unique_paths.size()) names = paths;
  for (std::string& name : names) name = escaped(name);
  return names;
}

void write_output(const std::string& path, const std::string& text, bool overwrite) {
  store::AtomicFile file(path, overwrite);
  {
    errno = 0;
    std::ofstream out(file.temporary_path(), std::ios::binary);
    file.protect();
    out << text << std::flush;
    const int error = errno;
    if (!out) fail("cannot write {}: {}", path, error != 0 ? std::strerror(error) : "the disk may be full");
  }
  file.put_in_place();
}

void check_output(const std::string& path, bool overwrite) {
  const store::AtomicFile unused(path, overwrite);
}

}  // namespace harness::cli
