#pragma once

#include <optional>
#include <string>

#include "config/problems.h"

namespace harness::config {

/// Reads a text file that a person wrote: a regular file of at most 1 MiB, valid UTF-8, no control characters but line
/// ends and tabs, no tabs in indentation. Anything else is one problem of `source` and nullopt.
std::optional<std::string> read_text_file(const std::string& path, int source, Problems& problems);

/// The same checks on text that is already in memory. True if it is fine.
bool check_text(const std::string& text, int source, Problems& problems);

}  // namespace harness::config
