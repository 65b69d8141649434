#pragma once

#include <string>

namespace harness {

/// The program as the person called it, as a word of a command to type: "./harness", "harness" or a path. The launcher
/// script says it in HARNESS_CALLED, because it replaces itself with the binary.
std::string called();

}  // namespace harness
