#include "store/roles.h"

#include <algorithm>
#include <set>
#include <utility>

namespace harness::store {
namespace {

// By the sizes of the layout; by the roles that have a timeline, where there are any.
std::vector<ResultRole> roles_in_older_files(const Result& result, std::int32_t case_index) {
  const ResultCase& of = result.case_at(case_index);
  const int ranks = std::max(of.ranks, 1);
  program::Layout layout = of.layout;
  std::int64_t product = 1;
  for (const int n : layout.size) product *= n;
  const bool fits = product == ranks && std::ranges::all_of(layout.size, [](int n) { return n > 0; });
  if (!fits) layout = {{program::Axis::data, ranks}};
  std::set<std::int32_t> profiled;
  for (const ResultInterval& x : result.timeline) {
    if (x.case_index == case_index) profiled.insert(x.role);
  }
  const int role_count = profiled.empty() ? layout[program::Axis::pipeline] : static_cast<int>(profiled.size());
  const int ranks_of_role = std::max(1, ranks / role_count);
  std::vector<ResultRole> roles;
  for (int rank = 0; rank < ranks; ++rank) {
    roles.push_back({case_index, rank, rank / ranks_of_role, layout.coordinates(rank)});
  }
  return roles;
}

// A job's ranks stood where they stood in all cases.
void fill_nodes_of_older_files(const Result& result, std::vector<ResultRole>& roles) {
  std::vector<std::int32_t> node_of(roles.size(), -1);
  for (const ResultRank& row : result.rank_table) {
    if (row.rank >= 0 && std::cmp_less(row.rank, node_of.size())) node_of[row.rank] = row.node;
  }
  for (ResultRole& row : roles) {
    if (row.node < 0) row.node = node_of[row.rank];
  }
}

}  // namespace

std::vector<ResultRole> roles_of(const Result& result, std::int32_t case_index) {
  const auto first = std::ranges::lower_bound(result.roles, case_index, {}, &ResultRole::case_index);
  const auto end = std::ranges::upper_bound(result.roles, case_index, {}, &ResultRole::case_index);
  std::vector<ResultRole> roles =
      first != end ? std::vector<ResultRole>(first, end) : roles_in_older_files(result, case_index);
  fill_nodes_of_older_files(result, roles);
  return roles;
}

}  // namespace harness::store
