#pragma once

#include <filesystem>
#include <string>

namespace harness::test {

/// Returns the contents of the file; "" if it cannot be read.
std::string text_of(const std::filesystem::path& file);

/// A temporary folder for one test, removed afterwards with its contents.
class TemporaryFolder {
 public:
  /// Creates the folder in `parent`, or in the system's temporary directory.
  explicit TemporaryFolder(const std::string& parent = "");
  ~TemporaryFolder();
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;

  const std::string& path() const { return path_; }
  std::string operator/(const std::string& name) const { return path_ + "/" + name; }
  /// Writes a file, and creates the folders above it. Returns its path.
  std::string write(const std::string& name, const std::string& text) const;

 private:
  std::string path_;
};

}  // namespace harness::test
