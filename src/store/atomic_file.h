#pragma once

#include <sys/types.h>

#include <optional>
#include <string>

namespace harness::store {

struct Permissions {
  mode_t mode = 0;
  uid_t user = 0;
  gid_t group = 0;
};

/// A file that appears under its name only when it is whole: it is written beside that name, then renamed. It takes
/// over the permissions of the file that it replaces, and its owner where this process may give files away. A temporary
/// file that a killed process of this machine left is removed by the next one that writes there.
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
  std::optional<Permissions> present_;  // of the file that it replaces
};

/// The name of a temporary file beside `path`, which the next AtomicFile there removes if this process is gone by then.
std::string temporary_name(const std::string& path);
/// The directory that `path` lies in: "." if it names none.
std::string directory_of(const std::string& path);
/// `directory of path`/PREFIX NAME END, where NAME is the file's and is cut so that the whole is no longer than a name
/// may be.
std::string beside(const std::string& path, const std::string& prefix, const std::string& end);

}  // namespace harness::store
