#pragma once

#include <string>
#include <vector>

namespace harness {

/// Variables of the environment by which tests plant faults and pretend machines. Only a program whose main() allows
/// them honours them: build/PRESET/with_hooks/harness and test programs do, what is installed or bundled does not, so
/// that a variable left in somebody's environment cannot forge a verdict.
void allow_test_hooks();

/// The value of such a variable; nullptr where it is unset or not honoured.
const char* test_hook(const char* name);

/// The names of all that are set though this program does not honour them.
std::vector<std::string> ignored_test_hooks();

}  // namespace harness
