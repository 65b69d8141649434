#pragma once

#include <string>

namespace harness::store {

/// A file that appears under its name only when it is whole: written beside it, then renamed. A temporary file that a
/// killed process of this machine left is removed by the next one that writes there.
class AtomicFile {
 public:
  /// Makes missing directories. Throws Error if the place cannot be written or is taken, unless `overwrite`.
  AtomicFile(const std::string& path, bool overwrite);
  ~AtomicFile();  // removes what was not put in place
  AtomicFile(const AtomicFile&) = delete;
  AtomicFile& operator=(const AtomicFile&) = delete;

  const std::string& temporary_path() const { return temporary_; }
  /// Syncs the closed temporary file to disk and gives it its name.
  void put_in_place();

 private:
  std::string path_, temporary_;
  bool overwrite_;
};

}  // namespace harness::store
