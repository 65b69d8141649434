#pragma once

#include "store/result.h"

namespace harness::store {

/// Throws Error where a number of a result that was read cannot be: readers count with ranks, steps and cases, and a
/// damaged one must neither lead out of a table nor into a loop of 2^31. Each message names table, column and number.
void require_plausible(const Result& result);

}  // namespace harness::store
