#include "store/atomic_file.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <random>

#include "base/file.h"
#include "base/text.h"

namespace harness::store {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t max_name_bytes = 255;

[[noreturn]] void taken(const std::string& path) {
  fail("{} already exists: choose another name, or give --force to replace it", path);
}

void sync(const std::string& path, bool required) {
  const Descriptor file(open(path.c_str(), O_RDONLY | O_CLOEXEC));
  const bool synced = file && fsync(file.number()) == 0;
  if (!synced && required) fail("cannot write {} to disk: {}", path, std::strerror(errno));
}

}  // namespace

std::string directory_of(const std::string& path) {
  const fs::path parent = fs::path(path).parent_path();
  return parent.empty() ? "." : parent.string();
}

std::string beside(const std::string& path, const std::string& prefix, const std::string& end) {
  const std::string name = fs::path(path).filename().string();
  const std::size_t kept =
      whole_characters(name, max_name_bytes - std::min(max_name_bytes, prefix.size() + end.size()));
  return (fs::path(path).parent_path() / (prefix + name.substr(0, kept) + end)).string();
}

std::string random_token() {
  std::random_device device;
  return fmt::format("{:08x}{:08x}", device(), device());
}

AtomicFile::AtomicFile(const std::string& path, bool overwrite) : path_(path), overwrite_(overwrite) {
  const fs::path name = fs::path(path).filename();
  if (name.empty() || name == "." || name == "..") fail("'{}' cannot be written: it names a directory", path);
  std::error_code error;
  const fs::file_status there = fs::status(path, error);
  if (error == std::errc::filename_too_long)
    fail("{} cannot be written: {}; choose a shorter one", path, error.message());
  if (fs::is_directory(there)) fail("{} cannot be written: it is a directory", path);
  if (fs::exists(there) && !fs::is_regular_file(there)) fail("{} cannot be written: it is not a regular file", path);
  if (fs::exists(there) && !overwrite) taken(path);
  const std::string directory = directory_of(path);
  fs::create_directories(directory, error);
  if (error) fail("cannot create the directory {} of {}: {}", directory, path, error.message());
  if (faccessat(AT_FDCWD, directory.c_str(), W_OK | X_OK, AT_EACCESS) != 0) {
    fail("cannot write to the directory {}: {}", directory, std::strerror(errno));
  }
  struct stat present {};
  if (::stat(path.c_str(), &present) == 0) present_ = present;
  temporary_ = beside(path, ".", fmt::format(".{}.tmp", random_token()));
}

AtomicFile::~AtomicFile() {
  if (!temporary_.empty()) unlink(temporary_.c_str());
}

void AtomicFile::protect() const {
  if (!present_) return;
  mode_t mode = present_->st_mode & 07777;
  // If the group cannot be kept, another group must not gain the access that this one had.
  if (::chown(temporary_.c_str(), static_cast<uid_t>(-1), present_->st_gid) != 0) mode &= ~mode_t{070};
  if (::chmod(temporary_.c_str(), mode) != 0) fail("cannot set the mode of {}: {}", temporary_, std::strerror(errno));
}

void AtomicFile::put_in_place() {
  protect();
  sync(temporary_, true);
  // Unlike rename, a hard link fails if another process has taken the name meanwhile. Not every file system has them.
  const bool linked = !overwrite_ && link(temporary_.c_str(), path_.c_str()) == 0;
  if (!overwrite_ && !linked && (errno == EEXIST || access(path_.c_str(), F_OK) == 0)) taken(path_);
  if (linked) {
    unlink(temporary_.c_str());
  } else if (std::rename(temporary_.c_str(), path_.c_str()) != 0) {
    fail("cannot rename {} to {}: {}", temporary_, path_, std::strerror(errno));
  }
  temporary_.clear();
  sync(directory_of(path_), false);
}

}  // namespace harness::store
