#include "analysis/climb.h"

#include <algorithm>

namespace harness::analysis {

const CaseSummary* start_of_climb(const store::Result& result, const Summary& summary) {
  const store::ResultCase* baseline = result.baseline();
  if (result.climb.empty() || baseline == nullptr) return nullptr;
  std::vector<std::string> start = baseline->settings;
  // From the last stage to the first: a variable that changed twice ends where it began.
  for (auto stage = result.climb.rbegin(); stage != result.climb.rend(); ++stage) {
    const std::string variable = stage->change.substr(0, stage->change.find('='));
    const auto at = std::ranges::find(result.variables, variable);
    if (at == result.variables.end()) return nullptr;
    start[static_cast<std::size_t>(at - result.variables.begin())] = stage->was;
  }
  const auto is_start = [&](const CaseSummary& row) {
    return row.role == store::CaseRole::change && result.at(row).settings == start;
  };
  const auto found = std::ranges::find_if(summary.cases, is_start);
  return found == summary.cases.end() ? nullptr : &*found;
}

}  // namespace harness::analysis
