#include "cli/output.h"

#include <fcntl.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iostream>

#include "base/file.h"
#include "job/mpi/mpi_job.h"
#include "store/atomic_file.h"

namespace harness::cli {

int CleanStream::Buffer::sync() {
  to << escaped_lines(str());
  str("");
  return to.flush() ? 0 : -1;
}

std::ostream& operator<<(std::ostream& out, const TerminalText& text) {
  auto* const clean = dynamic_cast<CleanStream*>(&out);
  if (clean == nullptr) return out << text.text;
  clean->flush();
  clean->to() << text.text;
  return out;
}

namespace {

bool writes_to_stdout(const std::ostream& out) {
  const auto* const clean = dynamic_cast<const CleanStream*>(&out);
  return (clean == nullptr ? out : clean->to()).rdbuf() == std::cout.rdbuf();
}

// 0: not a terminal, or one without a known size.
std::size_t columns_behind(int descriptor) {
  winsize size{};
  return isatty(descriptor) == 1 && ioctl(descriptor, TIOCGWINSZ, &size) == 0 ? size.ws_col : 0;
}

// 0: no limit.
std::size_t width_of(const std::ostream& out) {
  if (writes_to_stdout(out)) {
    if (const auto columns = columns_of_terminal(STDOUT_FILENO)) return *columns;
  }
  return number_in<std::size_t>(mpi::own_environment("COLUMNS").value_or("")).value_or(0);
}

}  // namespace

bool is_terminal(const std::ostream& out) {
  return writes_to_stdout(out) && isatty(STDOUT_FILENO) == 1 && mpi::own_environment("TERM") != "dumb";
}

std::optional<std::size_t> columns_of_terminal(int descriptor) {
  if (const std::size_t columns = columns_behind(descriptor); columns > 0) return columns;
  if (!mpi::launcher_claim(mpi::own_environment)) return std::nullopt;
  // mpirun gives its ranks pipes, or a terminal without a size, and copies their output to its own.
  const std::string theirs = fmt::format("/proc/{}/fd/{}", getppid(), descriptor);
  std::error_code unreadable;
  const std::string name = std::filesystem::read_symlink(theirs, unreadable).string();
  if (unreadable || !(name.starts_with("/dev/pts/") || name.starts_with("/dev/tty"))) return std::nullopt;
  const Descriptor terminal(::open(name.c_str(), O_RDONLY | O_NOCTTY | O_CLOEXEC));
  if (!terminal) return std::nullopt;
  const std::size_t columns = columns_behind(terminal.number());
  return columns > 0 ? std::optional(columns) : std::nullopt;
}

void print(report::Document document, std::string_view format, const ViewOptions& options, std::ostream& out) {
  constexpr std::size_t least_prose = 40, most_prose = 120;  // columns; other widths are hard to read
  const std::size_t width = format == "md" ? 0 : width_of(out);
  report::arrange(document, {width, options.columns});
  if (format == "md") {
    out << report::write_markdown(document);
    return;
  }
  const bool colored = options.colored && is_terminal(out) && mpi::own_environment("NO_COLOR").value_or("").empty();
  const std::size_t prose = width == 0 ? most_prose : std::clamp(width, least_prose, most_prose);
  out << TerminalText{report::write_text(document, prose, colored)};
}

void write_output(const std::string& path, const std::function<void(std::ostream&)>& write, bool overwrite) {
  store::AtomicFile file(path, overwrite);
  errno = 0;
  try {
    std::ofstream out;
    out.exceptions(std::ios::badbit | std::ios::failbit);
    out.open(file.temporary_path(), std::ios::binary);
    file.protect();
    write(out);
    out.close();
  } catch (const std::ios_base::failure&) {
    fail("cannot write {}: {}", path, errno != 0 ? std::strerror(errno) : "the disk may be full");
  }
  file.put_in_place();
}

void write_output(const std::string& path, const std::string& text, bool overwrite) {
  write_output(
      path, [&](std::ostream& out) { out << text; }, overwrite);
}

void check_output(const std::string& path, bool overwrite) {
  const store::AtomicFile unused(path, overwrite);
}

}  // namespace harness::cli
