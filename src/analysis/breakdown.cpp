#include "analysis/breakdown.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <map>
#include <span>
#include <string_view>
#include <tuple>

#include "analysis/cases.h"
#include "analysis/profiled_step.h"
#include "config/backend.h"

namespace harness::analysis {
namespace {

using Intervals = std::vector<const store::ResultInterval*>;

template <class Key>
std::vector<std::pair<Key, double>> largest_first(const std::map<Key, double>& seconds) {
  std::vector<std::pair<Key, double>> sorted(seconds.begin(), seconds.end());
  std::ranges::stable_sort(sorted, std::ranges::greater(), &std::pair<Key, double>::second);
  return sorted;
}

// Sums up the lists that a Breakdown holds in addition to its parts.
struct Lists {
  std::map<std::string, double> other_compute;
  std::map<IdlePlace, double> idle;
  std::map<Part, double> overlapped;
  std::map<std::tuple<std::string, std::string, bool>, KindTime> kinds;

  void add(const KindTime& time, double weight = 1) {
    KindTime& sum =
        kinds.try_emplace({time.kind, time.group, time.recomputed}, KindTime{time.kind, time.group, time.recomputed})
            .first->second;
    sum.takes_s += time.takes_s * weight;
    sum.owns_s += time.owns_s * weight;
  }
  void write_to(Breakdown& breakdown) const {
    breakdown.other_compute = largest_first(other_compute);
    breakdown.idle = largest_first(idle);
    breakdown.overlapped = largest_first(overlapped);
    for (const auto& [key, time] : kinds) breakdown.kinds.push_back(time);
  }
};

// A stretch of an interval that belongs to one part.
struct Piece {
  std::size_t interval;
  Part part;
};

IdlePlace place_of(const Gap& gap, const std::vector<Piece>& pieces, const Intervals& intervals) {
  using enum IdlePlace::Kind;
  if (!gap.before) return {.kind = before_first};
  if (!gap.after) return {.kind = after_last};
  const store::ResultInterval& before = *intervals[pieces[*gap.before].interval];
  const store::ResultInterval& after = *intervals[pieces[*gap.after].interval];
  if (is_communication(before.kind) && is_communication(after.kind)) return {.kind = between_collectives};
  return {before.phase == after.phase ? within_phase : between_phases, before.phase, after.phase};
}

constexpr std::string_view compute_stream = "compute";

// Decides which of several running operations a moment counts for; the lowest number wins. The compute stream comes
// first, then computations of other streams (the optimizer during the backward pass), then the communication that
// computation waits for first: a layer's own before that of gradients.
int priority_of(const store::ResultInterval& x, Part part) {
  if (is_communication(x.kind)) return 2 + static_cast<int>(part);
  return x.stream == compute_stream ? 0 : 1;
}

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
  Part part_of(const store::ResultInterval& x) const {
    if (!is_communication(x.kind)) return computation_part(x.kind, x.recomputed != 0);
    return communication_part(group_of_(x), x.phase == closing_phase);
  }

  // A communication waits for the latest of its partners first, and then goes on.
  void add_occupants(const store::ResultInterval& x, std::size_t index, std::vector<Piece>& pieces,
                     std::vector<Occupant>& occupants) const {
    const Part part = part_of(x);
    const int priority = priority_of(x, part);
    double start_s = x.start_s;
    const auto add = [&](Part piece, double end_s) {
      pieces.push_back({index, piece});
      occupants.push_back({start_s, end_s, priority, !is_communication(x.kind)});
      start_s = end_s;
    };
    if (is_communication(x.kind)) {
      const auto within = [&](double seconds) {
        return std::clamp(start_s + seconds, start_s, std::max(start_s, x.end_s));
      };
      const bool others = is_collective(x.kind) && ranks_.has_stage_mates();
      if (others && std::isfinite(x.waiting_s)) add(Part::waiting, within(x.waiting_s));
      if (ranks_.has_stages() && std::isfinite(x.bubble_s)) add(Part::bubble, within(x.bubble_s));
    }
    add(part, x.end_s);
  }

  Breakdown of_rank(int role, int rank, const Intervals& intervals) const {
    Breakdown b;
    b.case_index = case_index_;
    b.role = role;
    b.rank = rank;
    const auto split = splits_.find(rank);
    std::vector<Piece> pieces;
    std::vector<Occupant> occupants;
    for (std::size_t i = 0; i < intervals.size(); ++i) {
      b.step_s = std::max(b.step_s, intervals[i]->end_s);
      add_occupants(*intervals[i], i, pieces, occupants);
    }
    if (split != splits_.end() && split->second->step_s > 0) b.step_s = split->second->step_s;
    const Occupancy time = occupy(occupants, b.step_s);
    Lists lists;
    for (std::size_t i = 0; i < pieces.size(); ++i) {
      const store::ResultInterval& x = *intervals[pieces[i].interval];
      b.parts.add(pieces[i].part, time.owned_s[i]);
      if (pieces[i].part == Part::other_compute) lists.other_compute[x.kind] += time.owned_s[i];
      if (time.hidden_s[i] > 0) lists.overlapped[part_of(x)] += time.hidden_s[i];
      if (pieces[i].part != Part::waiting && pieces[i].part != Part::bubble) {
        const double takes_s = std::max(0.0, occupants[i].end_s - occupants[i].start_s);
        lists.add({x.kind, group_of_(x), x.recomputed != 0, takes_s, time.owned_s[i]});
      }
    }
    b.parts.add(Part::idle, 0);
    for (const Gap& gap : time.gaps) {
      double idle_s = gap.end_s - gap.start_s;
      if (gap.start_s <= 0 && split != splits_.end() && std::isfinite(split->second->loading_s)) {
        const double loading_s = std::clamp(split->second->loading_s, 0.0, idle_s);
        b.parts.add(Part::loading, loading_s);
        idle_s -= loading_s;
      }
      b.parts.add(Part::idle, idle_s);
      if (idle_s > 0) lists.idle[place_of(gap, pieces, intervals)] += idle_s;
    }
    if (split != splits_.end() && split->second->loading_s > b[Part::loading].value_or(0)) {
      lists.overlapped[Part::loading] = split->second->loading_s - b[Part::loading].value_or(0);
    }
    lists.write_to(b);
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

Breakdown mean_of(std::span<const Breakdown> ranks) {
  Breakdown mean;
  mean.case_index = ranks.front().case_index;
  mean.role = mean.rank = -1;
  const double weight = 1 / static_cast<double>(ranks.size());
  Lists lists;
  for (const Breakdown& b : ranks) {
    mean.step_s += b.step_s * weight;
    for (const Part part : all_parts) {
      if (b[part]) mean.parts.add(part, *b[part] * weight);
    }
    for (const auto& [kind, s] : b.other_compute) lists.other_compute[kind] += s * weight;
    for (const auto& [place, s] : b.idle) lists.idle[place] += s * weight;
    for (const auto& [part, s] : b.overlapped) lists.overlapped[part] += s * weight;
    for (const KindTime& time : b.kinds) lists.add(time, weight);
  }
  lists.write_to(mean);
  return mean;
}

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
