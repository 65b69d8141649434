#pragma once

#include <string>

#include "store/hdf5_file.h"
#include "store/result_file.h"

namespace harness::store {

/// Makes every object of a result file, filled with what the plan knows.
void create_objects(hdf5::File& file, const Result& plan, const ResultCapacity& capacity);

}  // namespace harness::store
