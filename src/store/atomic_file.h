#pragma once

#include <sys/stat.h>

#include <optional>
#include <string>

namespace harness::store {

/// A file that appears under its name only when it is whole: it is written beside that name, then renamed. It takes
/// over the mode and the group of the file that it replaces. A killed process leaves the temporary file.
class AtomicFile {
 public:
  /// Makes missing directories. Throws Error if the place cannot be written or is taken, unless `overwrite`.
  AtomicFile(const std::string& path, bool overwrite);
  ~AtomicFile();  // removes what was not put in place
  AtomicFile(const AtomicFile&) = delete;
  AtomicFile& operator=(const AtomicFile&) = delete;

  const std::string& temporary_path() const { return temporary_; }
  /// Gives the temporary file, made by now, the permissions; before anything that is not for all eyes is written to it.
  void protect() const;
  /// Syncs the closed temporary file to disk and gives it its name.
  void put_in_place();

 private:
  std::string path_, temporary_;
  bool overwrite_;
  std::optional<struct stat> present_;  // of the file that it replaces
};

/// 16 random hexadecimal digits.
std::string random_token();
/// The directory that `path` lies in: "." if it names none.
std::string directory_of(const std::string& path);
/// `directory of path`/PREFIX NAME END, where NAME is the file's and is cut so that the whole is no longer than a name
/// may be.
std::string beside(const std::string& path, const std::string& prefix, const std::string& end);

}  // namespace harness::store
