#pragma once

#include <sys/types.h>

#include <optional>
#include <string>
#include <utility>

namespace harness::store {

/// A descriptor that closes what it has.
class Descriptor {
 public:
  explicit Descriptor(int number = -1) : number_(number) {}
  Descriptor(Descriptor&& other) noexcept : number_(std::exchange(other.number_, -1)) {}
  Descriptor& operator=(Descriptor&& other) noexcept {
    std::swap(number_, other.number_);
    return *this;
  }
  ~Descriptor();
  explicit operator bool() const { return number_ >= 0; }
  int number() const { return number_; }
  int release() { return std::exchange(number_, -1); }

 private:
  int number_;
};

/// Which file it is, whatever its name.
struct FileId {
  dev_t device = 0;
  ino_t inode = 0;
  bool operator==(const FileId&) const = default;
};
/// By opening it, so that NFS asks its server. Nothing: there is no such file. Throws Error where that cannot be known.
std::optional<FileId> id_of(const std::string& path);

/// All of a small file, at most 4 KiB; nothing if it is not there.
std::optional<std::string> read_plain(const std::string& path);

/// `directory of path`/PREFIX NAME END, where NAME is the file's and is cut so that the whole is no longer than a name
/// may be.
std::string beside(const std::string& path, const std::string& prefix, const std::string& end);
/// The directory that `path` lies in: "." if it names none.
std::string directory_of(const std::string& path);

/// Copies the bytes of a file into a new one, and onto the disk. Throws Error.
void copy_file(const std::string& from, const std::string& to);

}  // namespace harness::store
