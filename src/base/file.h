#pragma once

#include <unistd.h>

#include <cstddef>
#include <string>
#include <utility>

namespace harness {

/// The descriptor of an open file, which it closes; below 0: there is none.
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
  std::string problem;   // what follows the file's name in a message: "cannot be read: it is a directory"; "": none
  bool missing = false;  // there is no such file

  explicit operator bool() const { return problem.empty(); }
};

enum class TooLong { refused, cut };

/// Reads a regular file of at most `most_bytes` into memory. All input files are read here, so that none can make the
/// program wait (a pipe without a writer), fill the memory (/dev/zero, a sparse file) or set a device in motion.
FileText try_read_file(const std::string& path, std::size_t most_bytes, TooLong too_long = TooLong::refused);
/// Reads as try_read_file() does; throws Error with the path and the problem.
std::string read_file(const std::string& path, std::size_t most_bytes);

/// Reads an open file to its end, or one byte more than `most_bytes`, which shows that it is longer. Returns the error
/// number; 0: none. `expected_bytes`: of the file, as far as known.
int read_to_end(int descriptor, std::size_t most_bytes, std::size_t expected_bytes, std::string& text);

/// A folder for temporary files whose name nobody foresees and that nobody else may enter. It ends with this object.
class PrivateFolder {
 public:
  /// `name`: how the folder's name begins.
  explicit PrivateFolder(const std::string& name);
  ~PrivateFolder();
  PrivateFolder(const PrivateFolder&) = delete;
  PrivateFolder& operator=(const PrivateFolder&) = delete;

  /// "" where the system has no place for it.
  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

}  // namespace harness
