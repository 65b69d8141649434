#include "store/atomic_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <vector>

#include "base/error.h"
#include "base/text.h"
#include "store/lock.h"

namespace harness::store {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t max_name_bytes = 255;

[[noreturn]] void taken(const std::string& path) {
  fail("{} already exists: choose another name with -o, or give --force to replace it", path);
}

void sync(const std::string& path, bool required) {
  const int descriptor = open(path.c_str(), O_RDONLY | O_CLOEXEC);
  const bool synced = descriptor >= 0 && fsync(descriptor) == 0;
  const int error = errno;
  if (descriptor >= 0) close(descriptor);
  if (!synced && required) fail("cannot write {} to disk: {}", path, std::strerror(error));
}

// Names the writer, so that a later one knows whether a temporary file is still somebody's.
std::string own_ending() {
  const Owner owner = this_process();
  return fmt::format(".{:08x}-{}-{}-{}.tmp", fnv1a(owner.boot) & 0xffffffffu, owner.pid, owner.process_start,
                     owner.token.substr(0, 8));
}

// Whether the writer of a temporary file with this ending ran on this boot of this machine, and is gone.
bool is_of_a_dead_process(std::string_view ending) {
  const std::vector<std::string_view> words = split(ending.substr(1, ending.rfind('.') - 1), '-');
  Owner writer = this_process();
  if (words.size() != 4 || words[0] != fmt::format("{:08x}", fnv1a(writer.boot) & 0xffffffffu)) return false;
  const auto pid = number_in<std::int64_t>(words[1]), start = number_in<std::int64_t>(words[2]);
  if (!pid || !start) return false;
  writer.pid = *pid;
  writer.process_start = *start;
  return process_of(writer) == Process::gone;
}

// A kill leaves the file that it interrupts, as large as a result.
void remove_left_behind(const std::string& path) {
  std::error_code error;
  for (fs::directory_iterator entry(directory_of(path), error), end; !error && entry != end; entry.increment(error)) {
    const std::string name = entry->path().filename().string();
    if (!name.starts_with('.') || !name.ends_with(".tmp")) continue;
    const std::string ending = name.substr(name.rfind('.', name.size() - 5));
    if (name != fs::path(beside(path, ".", ending)).filename() || !is_of_a_dead_process(ending)) continue;
    unlink(entry->path().c_str());
  }
}

std::optional<Permissions> permissions_of(const std::string& path) {
  struct stat status {};
  if (::stat(path.c_str(), &status) != 0) return std::nullopt;
  return Permissions{status.st_mode & 07777, status.st_uid, status.st_gid};
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

std::string temporary_name(const std::string& path) {
  return beside(path, ".", own_ending());
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
  remove_left_behind(path);
  if (fs::exists(there)) present_ = permissions_of(path);
  temporary_ = temporary_name(path);
}

AtomicFile::~AtomicFile() {
  if (!temporary_.empty()) unlink(temporary_.c_str());
}

void AtomicFile::protect() const {
  if (!present_) return;
  const auto made = permissions_of(temporary_);
  if (!made) return;
  const bool given = made->user == present_->user && made->group == present_->group;
  // Where the owner cannot be kept, who belongs to another group must not gain what this one's members had.
  const bool moved = !given && ::chown(temporary_.c_str(), present_->user, present_->group) == 0;
  const mode_t mode = given || moved || made->group == present_->group ? present_->mode : present_->mode & ~mode_t{070};
  if (::chmod(temporary_.c_str(), mode) != 0) fail("cannot set the mode of {}: {}", temporary_, std::strerror(errno));
}

void AtomicFile::put_in_place() {
  protect();
  sync(temporary_, true);
  // A hard link, unlike rename, fails if someone else has taken the name meanwhile. Not every file system has them.
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
