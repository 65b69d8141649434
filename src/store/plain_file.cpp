#include "store/plain_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <vector>

#include "base/error.h"
#include "base/file.h"
#include "base/text.h"

namespace harness::store {
namespace {

constexpr std::size_t max_name_bytes = 255;

void write_all(int descriptor, const char* from, std::size_t bytes, const std::string& path) {
  while (bytes > 0) {
    const ssize_t written = write(descriptor, from, bytes);
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) fail("cannot write {}: {}", path, std::strerror(errno));
    from += written;
    bytes -= static_cast<std::size_t>(written);
  }
}

// A file that was replaced on the server between look-up and opening is there under its name once more.
int open_afresh(const std::string& path) {
  int descriptor = -1;
  for (int tries = 0; tries < 3; ++tries) {
    descriptor = open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (descriptor >= 0 || errno != ESTALE) break;
  }
  return descriptor;
}

}  // namespace

std::optional<FileId> id_of(const std::string& path) {
  const Descriptor file(open_afresh(path));
  struct stat status {};
  if (file && fstat(file.number(), &status) == 0) return FileId{status.st_dev, status.st_ino};
  if (errno == ENOENT || errno == ESTALE) return std::nullopt;
  fail("cannot look at {}: {}", path, std::strerror(errno));
}

std::optional<std::string> read_plain(const std::string& path) {
  const Descriptor file(open_afresh(path));
  if (!file) return std::nullopt;
  std::array<char, 4096> bytes{};
  const ssize_t length = pread(file.number(), bytes.data(), bytes.size(), 0);
  if (length < 0) return std::nullopt;
  return std::string(bytes.data(), static_cast<std::size_t>(length));
}

std::string directory_of(const std::string& path) {
  const std::filesystem::path parent = std::filesystem::path(path).parent_path();
  return parent.empty() ? "." : parent.string();
}

std::string beside(const std::string& path, const std::string& prefix, const std::string& end) {
  const std::string name = std::filesystem::path(path).filename().string();
  const std::size_t kept =
      whole_characters(name, max_name_bytes - std::min(max_name_bytes, prefix.size() + end.size()));
  return (std::filesystem::path(path).parent_path() / (prefix + name.substr(0, kept) + end)).string();
}

void copy_file(const std::string& from, const std::string& to) {
  const Descriptor in(open_afresh(from));
  if (!in) fail("cannot read {}: {}", from, std::strerror(errno));
  const Descriptor out(open(to.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600));
  if (!out) fail("cannot create {}: {}", to, std::strerror(errno));
  std::vector<char> buffer(1 << 20);
  for (;;) {
    const ssize_t length = read(in.number(), buffer.data(), buffer.size());
    if (length < 0 && errno == EINTR) continue;
    if (length < 0) fail("cannot read {}: {}", from, std::strerror(errno));
    if (length == 0) break;
    write_all(out.number(), buffer.data(), static_cast<std::size_t>(length), to);
  }
  if (fsync(out.number()) != 0) fail("cannot write {} to disk: {}", to, std::strerror(errno));
}

}  // namespace harness::store
