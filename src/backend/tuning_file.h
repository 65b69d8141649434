#pragma once

#include <string>

#include "backend/backend.h"

namespace harness::backend {

// Tuned choices in a text file: a heading, then a line per choice, key and value separated by a tab.

/// Empty if there is no file, or none that can be read whole.
Tuning read_tuning(const std::string& path);

/// "" or why it could not be written. Makes the folder, and replaces the file as a whole.
std::string write_tuning(const std::string& path, const Tuning& tuning);

}  // namespace harness::backend
