#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace harness::selftest {

enum class Outcome : std::uint8_t { passed, failed, not_run };
const char* name_of(Outcome outcome);

/// The result of one check: a line of the table that `harness selftest` prints, and what stands below it.
struct CheckLine {
  std::string check;  // "operations: layer_norm bf16"
  int cases = 0;
  double error = 0, tolerance = 0;  // the worst of all cases, and what is allowed; tolerance 0: nothing is compared
  Outcome outcome = Outcome::passed;
  std::vector<std::string> failures;  // one per failed case, complete sentences
  std::vector<std::string> notes;     // for people: figures, why something did not run
};

/// Takes the error in; beyond the tolerance (or not a number) the line has failed, and `what` says of which.
void judge(CheckLine& line, const std::string& what, double error);

/// 0: all passed; 1: something failed; 3: nothing ran at all.
int exit_code(const std::vector<CheckLine>& lines);

}  // namespace harness::selftest
