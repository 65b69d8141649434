#pragma once

#include <filesystem>
#include <string>

namespace harness::test {

/// What is in the file; "" if it cannot be read.
std::string text_of(const std::filesystem::path& file);

/// A folder of its own for one test, gone afterwards with all that is in it.
class TemporaryFolder {
 public:
  /// Below `parent`, or where the system keeps such folders.
  explicit TemporaryFolder(const std::string& parent = "");
  ~TemporaryFolder();
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;

  const std::string& path() const { return path_; }
  std::string operator/(const std::string& name) const { return path_ + "/" + name; }
  /// Writes a file, and the folders above it. Returns its path.
  std::string write(const std::string& name, const std::string& text) const;

 private:
  std::string path_;
};

}  // namespace harness::test
