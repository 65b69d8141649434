#pragma once

#include <string>

#include "store/result.h"

namespace harness::store {

/// Replaces the file at `path` by one that holds exactly `whole`, with its matrices and timelines; blocks may have been
/// added. The old file stays until the new one is complete. Throws Error if it cannot be written.
void rewrite_result(const std::string& path, const Result& whole);

}  // namespace harness::store
