#pragma once

#include <iosfwd>
#include <string>
#include <vector>

namespace harness {

/// The whole program: `arguments` without the program's name. Data goes to `out`, progress and messages to `err`.
/// Exit codes: 0 fine, 1 usage, configuration or I/O error, 4 some cases failed or the A/A control failed.
int run_cli(const std::vector<std::string>& arguments, std::ostream& out, std::ostream& err);

}  // namespace harness
