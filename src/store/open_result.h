#pragma once

#include <string>

#include "store/hdf5_file.h"

namespace harness::store {

/// Opens a result file, or throws Error: no such file, a directory, not HDF5, truncated, not a harness result, too new.
hdf5::File open_result(const std::string& path, bool writable);

}  // namespace harness::store
