#pragma once

#include <string>
#include <utility>
#include <vector>

namespace harness {

// This program: its version, its name, and the hooks that tests may use.

/// "0.1.0 (git 1a2b3c4)": the source this program was built from.
std::string tool_version();
/// Version, compiler, build type and sanitizer: stored with every result.
std::vector<std::pair<std::string, std::string>> build_identity();

/// The program's name as the user typed it, quoted for a shell: "./harness", "harness" or a path. The launcher script
/// passes it in HARNESS_CALLED, because it replaces itself with the binary.
std::string called();

/// Enables the environment variables with which tests plant faults and fake machines; without this call they are
/// ignored. Test programs and build/PRESET/with_hooks/harness call it. Installed and bundled programs do not, so that a
/// variable left in somebody's environment cannot forge a verdict.
void allow_test_hooks();

/// Returns the value of such a variable; nullptr if it is unset or ignored.
const char* test_hook(const char* name);

}  // namespace harness
