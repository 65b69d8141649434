#include <fmt/format.h>

#include "analysis/warnings.h"

namespace harness::analysis {

std::vector<std::string> doctor_warnings(const store::Result& result) {
  constexpr std::size_t most = 8;
  std::vector<std::string> warnings;
  std::size_t more = 0;
  for (const store::ResultFinding& row : result.doctor.findings) {
    if (!row.is_of_nodes() || !(row.is_failure() || row.is_warning())) continue;
    if (warnings.size() == most) {
      ++more;
      continue;
    }
    warnings.push_back(fmt::format("doctor, {} {} on {}: {}. What to do: {}", row.verdict, row.check, row.where,
                                   row.evidence, row.remedy));
  }
  if (more > 0) {
    warnings.push_back(
        fmt::format("doctor found {} more before the first round: `harness report` lists all of them", more));
  }
  return warnings;
}

}  // namespace harness::analysis
