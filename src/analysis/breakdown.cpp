#include "analysis/breakdown.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <map>
#include <span>
#include <string_view>

#include "analysis/cases.h"
#include "analysis/profiled_step.h"
#include "analysis/step_parts.h"
#include "config/backend.h"

namespace harness::analysis {
namespace {

using Intervals = std::vector<const store::ResultInterval*>;

constexpr std::string_view compute_stream = "compute";

class CaseParts {
 public:
  CaseParts(const store::Result& result, int case_index, const Intervals& intervals)
      : ranks_(result, case_index), case_index_(case_index), group_of_(result, case_index) {
    for (const store::ResultSplit& split : result.splits) {
      if (split.case_index == case_index) splits_[split.rank] = &split;
    }
    for (const store::ResultInterval* x : intervals) by_role_[{x->role, x->rank}].push_back(x);
  }

  CaseBreakdown all() const {
    CaseBreakdown whole;
    whole.case_index = case_index_;
    for (const auto& [key, intervals] : by_role_) whole.ranks.push_back(of_rank(key.first, key.second, intervals));
    whole.mean = mean_of(role_means(whole.ranks));  // every role has as many ranks
    find_critical(whole);
    return whole;
  }

 private:
  static Part part_of(const store::ResultInterval& x, std::string_view group) {
    if (!is_communication(x.kind)) return computation_part(x.kind, x.recomputed != 0);
    return communication_part(group, x.phase == closing_phase);
  }

  StepOperation operation_of(const store::ResultInterval& x, std::string_view group) const {
    StepOperation operation{.start_s = x.start_s,
                            .end_s = x.end_s,
                            .part = part_of(x, group),
                            .main = x.stream == compute_stream,
                            .kind = x.kind,
                            .group = group,
                            .phase = x.phase,
                            .recomputed = x.recomputed != 0};
    if (is_collective(x.kind) && ranks_.has_stage_mates()) operation.waiting_s = x.waiting_s;
    if (is_communication(x.kind) && ranks_.has_stages()) operation.bubble_s = x.bubble_s;
    return operation;
  }

  Breakdown of_rank(int role, int rank, const Intervals& intervals) const {
    double step_s = 0, loading_s = NAN;
    std::vector<StepOperation> operations;
    std::vector<std::string> groups;  // that the operations refer to
    groups.reserve(intervals.size());
    for (const store::ResultInterval* x : intervals) {
      step_s = std::max(step_s, x->end_s);
      operations.push_back(operation_of(*x, groups.emplace_back(group_of_(*x))));
    }
    if (const auto split = splits_.find(rank); split != splits_.end()) {
      if (split->second->step_s > 0) step_s = split->second->step_s;
      loading_s = split->second->loading_s;
    }
    Breakdown b = divide_step(operations, step_s, loading_s).breakdown;
    b.case_index = case_index_;
    b.role = role;
    b.rank = rank;
    return b;
  }

  Breakdown role_mean(const Breakdown& of_rank) const {
    std::vector<const store::ResultSplit*> splits;
    for (const std::int32_t rank : ranks_.of_same_role(of_rank.rank)) {
      const auto found = splits_.find(rank);
      splits.push_back(found == splits_.end() ? nullptr : found->second);
    }
    return mean_of_role(of_rank, splits);
  }

  // Exact where every rank of a role has a timeline; else divided as on the one that has.
  std::vector<Breakdown> role_means(std::span<const Breakdown> ranks) const {
    std::vector<Breakdown> roles;
    while (!ranks.empty()) {
      const auto end = std::ranges::find_if(ranks, [&](const Breakdown& b) { return b.role != ranks.front().role; });
      const auto of_role = ranks.first(static_cast<std::size_t>(end - ranks.begin()));
      const bool complete = of_role.size() > 1 && of_role.size() == ranks_.of_same_role(of_role.front().rank).size();
      roles.push_back(complete ? mean_of(of_role) : role_mean(of_role.front()));
      ranks = ranks.subspan(of_role.size());
    }
    return roles;
  }

  // The rank with the longest step, and the entry of `ranks` that is closest to it: its own, else its role's.
  void find_critical(CaseBreakdown& whole) const {
    double longest = 0;
    const auto consider = [&](std::int32_t rank, double step_s) {
      if (!(step_s > longest)) return;
      longest = step_s;
      whole.critical_rank = rank;
    };
    for (const auto& [rank, split] : splits_) consider(rank, split->step_s);
    if (whole.critical_rank < 0) {
      for (const Breakdown& b : whole.ranks) consider(b.rank, b.step_s);
    }
    const auto same_role = [&](std::int32_t rank) { return ranks_.same_role(rank, whole.critical_rank); };
    auto found = std::ranges::find(whole.ranks, whole.critical_rank, &Breakdown::rank);
    if (found == whole.ranks.end()) found = std::ranges::find_if(whole.ranks, same_role, &Breakdown::rank);
    if (found != whole.ranks.end()) whole.critical = static_cast<std::size_t>(found - whole.ranks.begin());
  }

  CaseRanks ranks_;
  int case_index_;
  GroupsOf group_of_;
  std::map<int, const store::ResultSplit*> splits_;
  std::map<std::pair<int, int>, Intervals> by_role_;
};

}  // namespace

std::string IdlePlace::name() const {
  if (kind == Kind::within_phase) return "within " + before;
  if (kind == Kind::between_phases) return before + " to " + after;
  static constexpr std::array names{"before the first operation", "after the last operation", "between collectives"};
  static_assert(names.size() == static_cast<std::size_t>(Kind::between_collectives) + 1);
  return names[static_cast<std::size_t>(kind)];
}

double Breakdown::hidden_s(Part part) const {
  const auto found = std::ranges::find(overlapped, part, &std::pair<Part, double>::first);
  return found == overlapped.end() ? 0 : found->second;
}

double Breakdown::overlapped_s() const {
  double sum = 0;
  for (const auto& [part, s] : overlapped) sum += part == Part::loading || is_computation(part) ? 0 : s;
  return sum;
}

double unexplained(const Breakdown& breakdown) {
  return breakdown.step_s > 0 ? std::abs(breakdown.step_s - breakdown.parts.sum()) / breakdown.step_s : 0;
}

const char* step_in_parts(const store::Result& result) {
  return config::traits_of(result.backend).predicts() ? "predicted step" : "profiled step";
}

std::vector<CaseBreakdown> break_down(const store::Result& result) {
  std::map<int, Intervals> by_case;
  for (const store::ResultInterval& x : result.timeline) by_case[x.case_index].push_back(&x);
  std::vector<CaseBreakdown> all;
  for (const auto& [case_index, intervals] : by_case) all.push_back(CaseParts(result, case_index, intervals).all());
  return all;
}

}  // namespace harness::analysis
