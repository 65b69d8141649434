#pragma once

#include <unistd.h>

#include <cstddef>
#include <string>
#include <utility>

namespace harness {

/// Owns a file descriptor and closes it on destruction; a negative number means none.
class Descriptor {
 public:
  explicit Descriptor(int number = -1) : number_(number) {}
  Descriptor(Descriptor&& other) noexcept : number_(std::exchange(other.number_, -1)) {}
  Descriptor& operator=(Descriptor&& other) noexcept {
    std::swap(number_, other.number_);
    return *this;
  }
  ~Descriptor() {
    if (number_ >= 0) ::close(number_);
  }
  explicit operator bool() const { return number_ >= 0; }
  int number() const { return number_; }
  int release() { return std::exchange(number_, -1); }

 private:
  int number_;
};

/// A file's bytes, or why there are none.
struct FileText {
  std::string text;
  std::string problem;   // follows the file's name in a message: "cannot be read: it is a directory"; "": none
  bool missing = false;  // the file does not exist

  explicit operator bool() const { return problem.empty(); }
};

enum class TooLong { refused, cut };

/// Reads a regular file of at most `most_bytes` into memory. Every input file is read here, so that none can block the
/// program (a pipe without a writer), exhaust memory (/dev/zero, a sparse file) or operate a device.
FileText try_read_file(const std::string& path, std::size_t most_bytes, TooLong too_long = TooLong::refused);
/// Reads as try_read_file() does; throws Error with the path and the problem.
std::string read_file(const std::string& path, std::size_t most_bytes);

/// Reads an open file to its end, or up to `most_bytes` + 1 bytes: the extra byte shows that it is longer. Returns the
/// error number, 0 for none. `expected_bytes`: the size of the file, as far as it is known.
int read_to_end(int descriptor, std::size_t most_bytes, std::size_t expected_bytes, std::string& text);

/// A folder for temporary files, with an unpredictable name and no access for other users. Removed with this object.
class PrivateFolder {
 public:
  /// `name`: the prefix of the folder's name.
  explicit PrivateFolder(const std::string& name);
  ~PrivateFolder();
  PrivateFolder(const PrivateFolder&) = delete;
  PrivateFolder& operator=(const PrivateFolder&) = delete;

  /// "" if the folder could not be created.
  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

}  // namespace harness
