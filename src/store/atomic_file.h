#pragma once

#include <sys/stat.h>

#include <optional>
#include <string>

namespace harness::store {

/// A file that appears under its name only when it is complete: written beside that name, then renamed. It takes over
/// the mode and group of the file that it replaces. A killed process leaves the temporary file behind.
class AtomicFile {
 public:
  /// Creates missing directories. Throws Error if the place is not writable, or if the file exists, unless `overwrite`.
  AtomicFile(const std::string& path, bool overwrite);
  ~AtomicFile();  // removes the temporary file unless it was put in place
  AtomicFile(const AtomicFile&) = delete;
  AtomicFile& operator=(const AtomicFile&) = delete;

  const std::string& temporary_path() const { return temporary_; }
  /// Gives the existing temporary file the permissions. Call it before writing anything that is not for all eyes.
  void protect() const;
  /// Syncs the closed temporary file to disk and renames it.
  void put_in_place();

 private:
  std::string path_, temporary_;
  bool overwrite_;
  std::optional<struct stat> present_;  // the file to replace
};

/// 16 random hexadecimal digits.
std::string random_token();
/// Returns the directory of `path`: "." if it names none.
std::string directory_of(const std::string& path);
/// Returns DIRECTORY/PREFIX+NAME+END, from the directory and the name of `path`. NAME is cut where the whole would be
/// longer than a name may be.
std::string beside(const std::string& path, const std::string& prefix, const std::string& end);

}  // namespace harness::store
