#include "selftest/check_line.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstddef>

namespace harness::selftest {

const char* name_of(Outcome outcome) {
  static constexpr std::array names{"passed", "FAILED", "not run"};
  return names[static_cast<std::size_t>(outcome)];
}

void judge(CheckLine& line, const std::string& what, double error) {
  if (!(error <= line.error)) line.error = error;  // a NaN is kept: nothing is larger
  if (error <= line.tolerance) return;
  line.outcome = Outcome::failed;
  line.failures.push_back(fmt::format("{}: off by {:.3g}, allowed is {:.3g}", what, error, line.tolerance));
}

int exit_code(const std::vector<CheckLine>& lines) {
  const auto count = [&](Outcome o) { return std::ranges::count(lines, o, &CheckLine::outcome); };
  if (count(Outcome::failed) > 0) return 1;
  return count(Outcome::passed) > 0 ? 0 : 3;
}

}  // namespace harness::selftest
