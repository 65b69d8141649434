#pragma once

#include <string>

namespace harness::cli {

/// Writes a file that a reader of results makes: whole or not at all, in directories that are made if they are missing.
/// Throws Error if it cannot be written, or if it is there and not to be overwritten; then nothing is left behind.
void write_output(const std::string& path, const std::string& text, bool overwrite);

/// Throws what write_output() would throw of the place, before the work that makes the text.
void check_output(const std::string& path, bool overwrite);

}  // namespace harness::cli
