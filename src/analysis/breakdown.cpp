#include "analysis/breakdown.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <map>
#include <span>
#include <string_view>

#include "analysis/cases.h"
#include "config/backend.h"

namespace harness::analysis {
namespace {

// Averages the splits. step_s of the mean is the sum of its parts.
store::ResultSplit mean_of(std::span<const store::ResultSplit* const> splits) {
  store::ResultSplit m;
  m.waiting_s = m.bubble_s = 0;
  const double weight = 1 / static_cast<double>(splits.size());
  using S = store::ResultSplit;
  for (double S::*time :
       {&S::compute_s, &S::communication_s, &S::exposed_s, &S::overlapped_s, &S::idle_s, &S::waiting_s, &S::bubble_s}) {
    for (const S* split : splits) m.*time += split->*time * weight;
  }
  m.step_s = m.compute_s + m.exposed_s + m.idle_s;
  return m;
}

bool is_idle(Part part) {
  return part == Part::loading || part == Part::idle;
}
bool is_communication_or_waiting(Part part) {
  return !is_computation(part) && !is_idle(part);
}

void scale(Parts& parts, bool (*wanted)(Part), double factor) {
  for (const Part part : all_parts) {
    if (wanted(part) && parts[part]) *parts[part] *= factor;
  }
}

template <class Key>
void scale(std::vector<std::pair<Key, double>>& list, double factor) {
  for (auto& [key, s] : list) s *= factor;
}

// Divides exposed time into waiting, bubble and communication. Returns false if `parts` has no communication to scale.
bool divide(Parts& parts, const store::ResultSplit& split_of_rank, const store::ResultSplit& mean) {
  const double communication = parts.exposed();
  double left = mean.exposed_s;
  // The exposed share of the waiting time is that of the rank; the rest is hidden behind computation.
  const auto take = [&](Part part, double waited_of_rank_s, double waited_s) {
    if (!parts[part]) return;
    double exposed_s = mean.communication_s > 0 ? waited_s * mean.exposed_s / mean.communication_s : 0;
    if (waited_of_rank_s > 0) exposed_s = waited_s * std::min(1.0, *parts[part] / waited_of_rank_s);
    parts[part] = std::min(left, exposed_s);
    left -= *parts[part];
  };
  take(Part::waiting, split_of_rank.waiting_s, mean.waiting_s);
  take(Part::bubble, split_of_rank.bubble_s, mean.bubble_s);
  if (!(communication > 0)) return left < 1e-9 * mean.step_s;
  scale(parts, is_exposed_communication, left / communication);
  return true;
}

// Returns the time of a rank's communications, hidden or exposed, without the waiting for others.
double communicates_s(const store::ResultSplit& split) {
  const double waited_s = split.waiting_s + split.bubble_s;
  return std::isfinite(waited_s) ? std::max(0.0, split.communication_s - waited_s) : split.communication_s;
}

// Scales kinds like their parts: by the other ranks' times of all computations, of all exposed communications and of
// all communications.
void scale_kinds(Breakdown& role, const Breakdown& of_rank, const store::ResultSplit& own,
                 const store::ResultSplit& mean, double compute_factor) {
  const double exposed_of_rank = of_rank.parts.exposed();
  const double exposed_factor = exposed_of_rank > 0 ? role.parts.exposed() / exposed_of_rank : 1;
  const double of_rank_s = communicates_s(own);
  const double of_all_s = communicates_s(mean);
  const double communication_factor = of_rank_s > 0 ? of_all_s / of_rank_s : 1;
  for (KindTime& time : role.kinds) {
    const bool communicates = is_communication(time.kind);
    time.takes_s *= communicates ? communication_factor : compute_factor;
    time.owns_s *= communicates ? exposed_factor : compute_factor;
  }
}

bool adds_up(const store::ResultSplit& s) {
  const double sum_s = s.compute_s + s.exposed_s + s.idle_s;
  return s.step_s > 0 && std::abs(sum_s - s.step_s) < max_unexplained * s.step_s;
}

// Returns the mean over the ranks of a role. Their splits give each rank's times for computing, exposed communication,
// idling and waiting; `of_rank`, the breakdown of the rank with a timeline, gives the subdivision. Returns `of_rank`
// itself if it lacks a part that the others have.
Breakdown mean_of_role(const Breakdown& of_rank, std::span<const store::ResultSplit* const> splits) {
  const store::ResultSplit& own = **std::ranges::find(splits, of_rank.rank, &store::ResultSplit::rank);
  const store::ResultSplit mean = mean_of(splits);
  const double compute = of_rank.parts.sum(is_computation), idle = of_rank.parts.sum(is_idle),
               exposed = of_rank.parts.sum(is_communication_or_waiting);
  const auto missing = [](double of_rank_s, double of_all_s) { return !(of_rank_s > 0) && of_all_s > 0; };
  if (missing(compute, mean.compute_s) || missing(idle, mean.idle_s) || missing(exposed, mean.exposed_s)) {
    return of_rank;
  }
  Breakdown role = of_rank;
  role.step_s = mean.step_s;
  const double compute_factor = compute > 0 ? mean.compute_s / compute : 0;
  const double idle_factor = idle > 0 ? mean.idle_s / idle : 0;
  scale(role.parts, is_computation, compute_factor);
  scale(role.parts, is_idle, idle_factor);
  scale(role.other_compute, compute_factor);
  scale(role.idle, idle_factor);
  const double overlapped_factor = own.overlapped_s > 0 ? mean.overlapped_s / own.overlapped_s : 1;
  for (auto& [part, s] : role.overlapped) {
    if (part == Part::loading) continue;  // takes no part in the computation and communication of the splits
    s *= is_computation(part) ? compute_factor : overlapped_factor;
  }
  const bool known = std::isfinite(mean.waiting_s) && std::isfinite(mean.bubble_s);
  if (!known) {
    scale(role.parts, is_communication_or_waiting, exposed > 0 ? mean.exposed_s / exposed : 0);
  } else if (!divide(role.parts, own, mean)) {
    return of_rank;
  }
  scale_kinds(role, of_rank, own, mean, compute_factor);
  return role;
}

using Intervals = std::vector<const store::ResultInterval*>;

constexpr std::string_view compute_stream = "compute";

class CaseParts {
 public:
  CaseParts(const store::Result& result, int case_index, const Intervals& intervals)
      : ranks_(result, case_index), case_index_(case_index), group_of_(result, case_index) {
    for (const store::ResultSplit& split : result.splits) {
      if (split.case_index == case_index) splits_[split.rank] = &split;
    }
    for (const store::ResultInterval* x : intervals) by_role_[x->role][x->rank].push_back(x);
  }

  CaseBreakdown all() const {
    CaseBreakdown whole;
    whole.case_index = case_index_;
    std::vector<Breakdown> roles;
    for (const auto& [role, by_rank] : by_role_) {
      std::vector<Breakdown> ranks;
      for (const auto& [rank, intervals] : by_rank) ranks.push_back(of_rank(role, rank, intervals));
      roles.push_back(mean_over_role(ranks));
      whole.ranks.insert(whole.ranks.end(), ranks.begin(), ranks.end());
    }
    whole.mean = mean_of(roles);  // all roles have equally many ranks
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
    for (const store::ResultInterval* x : intervals) {
      step_s = std::max(step_s, x->end_s);
      operations.push_back(operation_of(*x, group_of_(*x)));
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

  // Exact if every rank of the role has a timeline; else scaled from the first that has, if the splits of all are
  // known.
  Breakdown mean_over_role(std::span<const Breakdown> ranks) const {
    const Breakdown& first = ranks.front();
    const CaseRanks::Ranks& all = ranks_.of_same_role(first.rank);
    if (ranks.size() > 1 && ranks.size() == all.size()) return mean_of(ranks);
    std::vector<const store::ResultSplit*> splits;
    for (const std::int32_t rank : all) {
      const auto found = splits_.find(rank);
      if (found == splits_.end() || !adds_up(*found->second)) return first;
      splits.push_back(found->second);
    }
    return splits.empty() ? first : mean_of_role(first, splits);
  }

  CaseRanks ranks_;
  int case_index_;
  GroupsOf group_of_;
  std::map<int, const store::ResultSplit*> splits_;
  std::map<int, std::map<int, Intervals>> by_role_;  // then by rank
};

}  // namespace

std::string IdlePlace::name() const {
  if (kind == Kind::within_phase) return "within " + before;
  if (kind == Kind::between_phases) return before + " to " + after;
  static constexpr std::array names{"before the first operation", "after the last operation", "between collectives"};
  static_assert(names.size() == static_cast<std::size_t>(Kind::between_collectives) + 1);
  return names[static_cast<std::size_t>(kind)];
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
