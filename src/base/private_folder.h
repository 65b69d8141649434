#pragma once

#include <string>

namespace harness {

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
