#pragma once

#include <string>

#include "store/hdf5_file.h"

namespace harness::store {

inline constexpr const char* schema_name = "harness-result";
/// Rises only if a reader of the version before would misread a file; a column more is no new version.
inline constexpr int schema_version = 3;

/// Opens a result file, or throws Error: no such file, a directory, not HDF5, truncated, not a harness result, too new.
hdf5::File open_result(const std::string& path, bool writable);

}  // namespace harness::store
