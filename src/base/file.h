#pragma once

#include <cstddef>
#include <string>

namespace harness {

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
/// The same; throws Error with the path and the problem.
std::string read_file(const std::string& path, std::size_t most_bytes);

}  // namespace harness
