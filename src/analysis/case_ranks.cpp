#include "analysis/case_ranks.h"

#include <algorithm>
#include <functional>
#include <map>
#include <utility>

#include "store/roles.h"

namespace harness::analysis {

CaseRanks::CaseRanks(const store::Result& result, std::int32_t case_index) {
  std::map<int, Ranks> by_stage;
  for (const store::ResultRole& row : store::roles_of(result, case_index)) {
    role_of_.push_back(row.role);
    by_role_.resize(std::max<std::size_t>(by_role_.size(), row.role + 1));
    by_role_[row.role].push_back(row.rank);
    by_stage[row.at[program::Axis::pipeline]].push_back(row.rank);
  }
  for (auto& [stage, ranks] : by_stage) alike_.push_back(std::move(ranks));
}

const CaseRanks::Ranks& CaseRanks::of_same_role(std::int32_t rank) const {
  static const Ranks none;
  return rank >= 0 && rank < count() ? by_role_[role_of_[rank]] : none;
}

program::Spans spans_of_case(const store::Result& result, std::int32_t case_index) {
  const auto differs = std::ranges::adjacent_find(result.rank_table, std::not_equal_to<>(), &store::ResultRank::node);
  if (differs == result.rank_table.end()) return {};
  std::vector<int> node_of;
  std::vector<program::Coordinates> at;
  for (const store::ResultRole& row : store::roles_of(result, case_index)) {
    node_of.push_back(row.node);
    at.push_back(row.at);
  }
  const bool tied = std::ranges::any_of(result.operations, [&](const store::ResultOperations& row) {
    return row.case_index == case_index && row.group == "embedding";
  });
  return program::spans_of(at, node_of, tied);
}

}  // namespace harness::analysis
