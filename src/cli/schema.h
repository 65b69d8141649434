#pragma once

#include <string>

namespace harness::cli {

/// A JSON Schema (draft 7) of the configuration, for editors: every key with its help, and nothing else allowed. Values
/// are checked as far as they are words; sizes, times and numbers are left to the program.
std::string configuration_schema();

}  // namespace harness::cli
