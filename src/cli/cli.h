#pragma once

#include <iosfwd>
#include <string>
#include <vector>

namespace harness::cli {

/// The whole program: `arguments` without the program's name. Data goes to `out`, progress and messages to `err`.
/// Exit codes: 0 success, 1 usage, configuration or I/O error, 2 slower than allowed (compare --fail-on), 3 nothing can
/// be compared, 4 a case failed, lost blocks cost a verdict, the control moved, or `compare` met a partial file, 5 a
/// sweep was stopped before its end. `doctor` has codes of its own (verbs.h).
int run_cli(const std::vector<std::string>& arguments, std::ostream& out, std::ostream& err);

}  // namespace harness::cli
