#pragma once

#include <string>
#include <utility>
#include <vector>

namespace harness {

// This program: its version, its name, and the hooks that tests may use.

/// "0.1.0 (git 1a2b3c4)": the source this program was built from.
std::string tool_version();
/// Compiler, flags, build type: what travels with every result.
std::vector<std::pair<std::string, std::string>> build_identity();

/// The program as the person called it, as a word of a command to type: "./harness", "harness" or a path. The launcher
/// script says it in HARNESS_CALLED, because it replaces itself with the binary.
std::string called();

/// Variables of the environment by which tests plant faults and pretend machines. Only a program whose main() allows
/// them honours them: build/PRESET/with_hooks/harness and test programs do, what is installed or bundled does not, so
/// that a variable left in somebody's environment cannot forge a verdict.
void allow_test_hooks();

/// The value of such a variable; nullptr where it is unset or not honoured.
const char* test_hook(const char* name);

}  // namespace harness
