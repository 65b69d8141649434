#pragma once

#include <sys/types.h>

#include <optional>
#include <string>

namespace harness::store {

/// Which file it is, whatever its name.
struct FileId {
  dev_t device = 0;
  ino_t inode = 0;
  bool operator==(const FileId&) const = default;
};
/// By opening it, so that NFS asks its server. Nothing: there is no such file. Throws Error where that cannot be known.
std::optional<FileId> id_of(const std::string& path);

/// All of a small file, at most 4 KiB; nothing if it is not there.
std::optional<std::string> read_plain(const std::string& path);

/// `directory of path`/PREFIX NAME END, where NAME is the file's and is cut so that the whole is no longer than a name
/// may be.
std::string beside(const std::string& path, const std::string& prefix, const std::string& end);
/// The directory that `path` lies in: "." if it names none.
std::string directory_of(const std::string& path);

/// Copies the bytes of a file into a new one, and onto the disk. Throws Error.
void copy_file(const std::string& from, const std::string& to);

}  // namespace harness::store
