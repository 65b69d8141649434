#include "store/result.h"

#include <algorithm>
#include <array>

#include "config/backend.h"
#include "config/registry.h"

namespace harness::store {

const char* name_of(RunState state) {
  static constexpr std::array names{"running", "complete", "partial"};
  return names[static_cast<std::size_t>(state)];
}

const char* name_of(CaseStatus status) {
  static constexpr std::array names{"pending", "ok", "failed", "impossible"};
  return names[static_cast<std::size_t>(status)];
}

const char* name_of(BlockStatus status) {
  static constexpr std::array names{"pending", "ok", "failed", "left out"};
  return names[static_cast<std::size_t>(status)];
}

bool is_control(std::string_view case_name) {
  constexpr std::string_view at = " at ";
  return case_name.starts_with(control_name) &&
         (case_name.size() == control_name.size() || case_name.substr(control_name.size()).starts_with(at));
}

CaseRole ResultCase::role() const {
  if (name == baseline_name) return CaseRole::baseline;
  if (is_control(name)) return CaseRole::control;
  return config::purpose_of(variable) == config::Purpose::size ? CaseRole::point : CaseRole::change;
}

std::string_view Result::step_backend() const {
  return stands_for.empty() ? backend : stands_for;
}

bool Result::ranks_are_gpus() const {
  return config::traits_of(step_backend()).ranks_are_gpus;
}

const ResultCase* Result::find_case(std::string_view case_name) const {
  const auto found = std::ranges::find(cases, case_name, &ResultCase::name);
  return found == cases.end() ? nullptr : &*found;
}

std::string_view Result::setting(const ResultCase& result_case, std::string_view variable) const {
  const auto found = std::ranges::find(variables, variable);
  if (found == variables.end()) return "";
  const std::size_t place = found - variables.begin();
  return place < result_case.settings.size() ? std::string_view(result_case.settings[place]) : "";
}

const ResultPoint* Result::find_point(std::int32_t case_index) const {
  const auto found = std::ranges::find(points, case_index, &ResultPoint::case_index);
  return found == points.end() ? nullptr : &*found;
}

std::span<const float> Result::timed_seconds(std::size_t block) const {
  if (block >= step_seconds.size()) return {};
  const std::span<const float> all(step_seconds[block]);
  return all.subspan(std::min(first_timed_step(), all.size()));
}

std::vector<ResultRole> roles_of(const Result& result, std::int32_t case_index) {
  const auto first = std::ranges::lower_bound(result.roles, case_index, {}, &ResultRole::case_index);
  const auto end = std::ranges::upper_bound(result.roles, case_index, {}, &ResultRole::case_index);
  std::vector<ResultRole> roles(first, end);
  if (roles.empty()) {
    const ResultCase& of = result.case_at(case_index);
    const program::Layout layout = of.layout.ranks() == of.ranks ? of.layout : program::Layout();
    for (int rank = 0; rank < of.ranks; ++rank) {
      const program::Coordinates at = layout.coordinates(rank);
      roles.push_back({case_index, rank, at[program::Axis::pipeline], at});
    }
  }
  // Where the file lacks the nodes of a case, its ranks were where the rank table has them.
  std::vector<std::int32_t> node_of(roles.size(), -1);
  for (const ResultRank& row : result.rank_table) {
    if (row.rank >= 0 && std::cmp_less(row.rank, node_of.size())) node_of[row.rank] = row.node;
  }
  for (ResultRole& row : roles) {
    if (row.node < 0) row.node = node_of[row.rank];
  }
  return roles;
}

}  // namespace harness::store
