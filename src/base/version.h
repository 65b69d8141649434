#pragma once

#include <string>
#include <utility>
#include <vector>

namespace harness {

/// "0.1.0 (git 1a2b3c4)": the source this program was built from.
std::string tool_version();
/// Compiler, flags, build type: what travels with every result.
std::vector<std::pair<std::string, std::string>> build_identity();

}  // namespace harness
