#include "base/file.h"

#include <fcntl.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <filesystem>

#include "base/text.h"
#include "base/units.h"

namespace harness {
namespace {

FileText unread(const std::string& why) {
  return {"", "cannot be read: " + why, false};
}

FileText failed(int error) {
  FileText file = unread(std::strerror(error));
  file.missing = error == ENOENT;
  return file;
}

FileText longer_than(std::size_t most_bytes) {
  return unread("it is longer than " + print_bytes_exact(static_cast<std::int64_t>(most_bytes)));
}

// "" for a regular file.
const char* irregular(const struct stat& status) {
  if (S_ISDIR(status.st_mode)) return "it is a directory";
  return S_ISREG(status.st_mode) ? "" : "it is a device or pipe, not a regular file";
}

FileText read_descriptor(int descriptor, std::size_t most_bytes, TooLong too_long) {
  struct stat status {};
  if (::fstat(descriptor, &status) != 0) return failed(errno);
  if (const std::string why = irregular(status); !why.empty()) return unread(why);
  const auto told = static_cast<std::size_t>(std::max<off_t>(0, status.st_size));  // 0 for files in /proc
  if (told > most_bytes && too_long == TooLong::refused) return longer_than(most_bytes);

  std::string text;
  if (const int error = read_to_end(descriptor, most_bytes, told, text); error != 0) return failed(error);
  if (text.size() > most_bytes && too_long == TooLong::refused) return longer_than(most_bytes);
  text.resize(std::min(text.size(), most_bytes));
  return {std::move(text), "", false};
}

}  // namespace

int read_to_end(int descriptor, std::size_t most_bytes, std::size_t expected_bytes, std::string& text) {
  constexpr std::size_t least_room = 4096;
  text.resize(std::min(most_bytes, std::max(expected_bytes, least_room)) + 1);  // one byte more shows a longer file
  std::size_t used = 0;
  for (;;) {
    if (used == text.size()) {
      if (used > most_bytes) break;
      text.resize(std::min(most_bytes, 2 * used) + 1);
    }
    const ssize_t got = ::read(descriptor, text.data() + used, text.size() - used);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return errno;
    if (got == 0) break;
    used += static_cast<std::size_t>(got);
  }
  text.resize(used);
  return 0;
}

FileText try_read_file(const std::string& path, std::size_t most_bytes, TooLong too_long) {
  // Checks before opening, because opening alone can operate a device.
  struct stat status {};
  if (::stat(path.c_str(), &status) != 0) return failed(errno);
  if (const std::string why = irregular(status); !why.empty()) return unread(why);
  const Descriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY));
  if (!file) return failed(errno);
  return read_descriptor(file.number(), most_bytes, too_long);
}

std::string read_file(const std::string& path, std::size_t most_bytes) {
  FileText file = try_read_file(path, most_bytes);
  if (!file) fail("{} {}", path, file.problem);
  return std::move(file.text);
}

PrivateFolder::PrivateFolder(const std::string& name) {
  std::error_code ignored;
  std::filesystem::path folder = std::filesystem::temp_directory_path(ignored);
  if (folder.empty()) folder = "/tmp";
  std::string path = (folder / (name + "-XXXXXX")).string();
  if (::mkdtemp(path.data()) != nullptr) path_ = path;
}

PrivateFolder::~PrivateFolder() {
  std::error_code ignored;
  if (!path_.empty()) std::filesystem::remove_all(path_, ignored);
}

}  // namespace harness
