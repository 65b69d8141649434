#pragma once

#include <iosfwd>

#include "cli/verbs.h"

namespace harness::cli {

/// `show` of two files or more: runs of one configuration, pooled. Returns the exit code; throws Error for options that
/// are about one run, and for files that are no repeats of each other.
int show_pooled(const ShowOptions& options, std::ostream& out);

}  // namespace harness::cli
