#include "analysis/case_ranks.h"

#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include "store/roles.h"

namespace harness::analysis {

CaseRanks::CaseRanks(const store::Result& result, std::int32_t case_index) {
  std::map<std::pair<std::int32_t, int>, Ranks> alike;  // by role and stage
  std::set<int> stages;
  for (const store::ResultRole& row : store::roles_of(result, case_index)) {
    const int stage = row.at[program::Axis::pipeline];
    role_of_.push_back(row.role);
    by_role_.resize(std::max<std::size_t>(by_role_.size(), row.role + 1));
    by_role_[row.role].push_back(row.rank);
    alike[{row.role, stage}].push_back(row.rank);
    stages.insert(stage);
  }
  for (auto& [key, ranks] : alike) alike_.push_back(std::move(ranks));
  stages_ = static_cast<std::int32_t>(stages.size());
}

const CaseRanks::Ranks& CaseRanks::of_same_role(std::int32_t rank) const {
  static const Ranks none;
  return rank >= 0 && rank < count() ? by_role_[role_of_[rank]] : none;
}

}  // namespace harness::analysis
