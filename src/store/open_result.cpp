#include "store/open_result.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>

#include "base/error.h"
#include "store/lock.h"

namespace harness::store {
namespace {

void require_plain_file(const std::string& path, bool writable) {
  std::error_code error;
  const auto status = std::filesystem::status(path, error);
  if (status.type() == std::filesystem::file_type::not_found) fail("{}: no such file{}", path, preparation_of(path));
  if (error) fail("{} cannot be opened: {}", path, error.message());
  if (std::filesystem::is_directory(status)) fail("{} is a directory; give a result file in it", path);
  // A FIFO would be waited for without end.
  if (!std::filesystem::is_regular_file(status)) fail("{} is not a regular file, so it is not a harness result", path);
  if (faccessat(AT_FDCWD, path.c_str(), writable ? R_OK | W_OK : R_OK, AT_EACCESS) != 0) {
    fail("{} cannot be opened for {}: {}", path, writable ? "writing" : "reading", std::strerror(errno));
  }
  if (!hdf5::File::is_hdf5(path)) fail("{} is not an HDF5 file, so it is not a harness result", path);
}

hdf5::File open_hdf5(const std::string& path, bool writable) {
  try {
    return hdf5::File::open(path, writable);
  } catch (const Error& failure) {
    if (std::string(failure.what()).find("truncated file") == std::string::npos) {
      fail("{} is damaged or was not written by harness: {}", path, failure.what());
    }
    std::error_code error;
    fail("{} is truncated to {} bytes: copy it again; a result file has its full size from the start", path,
         std::filesystem::file_size(path, error));
  }
}

bool is_result(const hdf5::File& file) {
  return file.has_attribute("/", "schema") && file.text_attribute("/", "schema") == schema_name;
}

}  // namespace

hdf5::File open_result(const std::string& path, bool writable) {
  require_plain_file(path, writable);
  hdf5::File file = open_hdf5(path, writable);
  std::int64_t version = 0;
  std::string writer = "a newer harness";
  bool known = false;
  try {
    known = is_result(file);
    if (known) version = file.number_attribute("/", "schema_version");
    if (known && file.has_attribute("/", "tool_version")) writer = file.text_attribute("/", "tool_version");
  } catch (const Error& failure) {
    fail("{} is damaged or was not written by harness: {}", path, failure.what());
  }
  if (!known) {
    fail("{} is an HDF5 file but not a harness result: it has no root attribute schema = \"{}\"", path, schema_name);
  }
  if (version < 1 || version > schema_version) {
    fail("{} was written by {} with file schema {}; this program reads schemas up to {}: use a newer harness", path,
         writer, version, schema_version);
  }
  return file;
}

}  // namespace harness::store
