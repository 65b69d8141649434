#include "analysis/breakdown.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <string_view>
#include <tuple>

#include "analysis/occupancy.h"
#include "analysis/waits.h"

namespace harness {
namespace {

using Intervals = std::vector<const ResultInterval*>;
using Names = std::map<std::string, double>;

NamedSeconds largest_first(const Names& names) {
  NamedSeconds sorted(names.begin(), names.end());
  std::ranges::stable_sort(sorted, std::ranges::greater(), &std::pair<std::string, double>::second);
  return sorted;
}

Part communication_part(std::string_view group) {
  for (const Part part : {Part::tensor, Part::pipeline, Part::data, Part::embedding, Part::world}) {
    if (group == key_of(part)) return part;
  }
  return Part::communication;
}

Part computation_part(const ResultInterval& x) {
  if (x.recomputed != 0) return Part::recomputation;
  if (x.kind == "matmul") return Part::matrix_products;
  return x.kind.starts_with("attention") ? Part::attention : Part::other_compute;
}

double length(const ResultInterval& x) {
  return x.end_s - x.start_s;
}

std::string place_of(const Gap& gap, const Intervals& intervals) {
  if (!gap.before) return "before the first operation";
  if (!gap.after) return "after the last operation";
  const ResultInterval &before = *intervals[*gap.before], &after = *intervals[*gap.after];
  if (is_communication(before.kind) && is_communication(after.kind)) return "between collectives";
  if (before.phase == after.phase) return "within " + before.phase;
  return before.phase + " to " + after.phase;
}

class CaseParts {
 public:
  CaseParts(const Result& result, int case_index, const Intervals& intervals)
      : waits_(result, case_index), case_index_(case_index) {
    for (const ResultOperations& row : result.operations) {
      if (row.case_index == case_index) groups_[{row.role, row.stream, row.kind, row.what}] = row.group;
    }
    for (const ResultSplit& split : result.splits) {
      if (split.case_index == case_index) splits_[split.rank] = &split;
    }
    for (const ResultInterval* x : intervals) {
      by_role_[{x->role, x->rank}].push_back(x);
      if (!is_communication(x->kind) || !(length(*x) >= 0)) continue;
      const auto [at, fresh] = fastest_.try_emplace({part_of(*x), x->what}, length(*x));
      if (!fresh) at->second = std::min(at->second, length(*x));
    }
  }

  CaseBreakdown all() const;

 private:
  Part part_of(const ResultInterval& x) const;
  Breakdown one(int role, int rank, const Intervals& intervals) const;
  void add_communication(Breakdown& to, const ResultInterval& x, double owned_s) const;

  Waits waits_;
  int case_index_;
  std::map<std::tuple<int, std::string_view, std::string_view, std::string_view>, std::string_view> groups_;
  std::map<int, const ResultSplit*> splits_;
  std::map<std::pair<int, int>, Intervals> by_role_;
  // Of communications that cross stages: what the quickest took, on either side of any border. The others waited.
  std::map<std::pair<Part, std::string_view>, double> fastest_;
};

// By its group; in older files by its stream, which is named for it.
Part CaseParts::part_of(const ResultInterval& x) const {
  if (!is_communication(x.kind)) return computation_part(x);
  const auto found = groups_.find({x.role, x.stream, x.kind, x.what});
  if (found != groups_.end() && !found->second.empty()) return communication_part(found->second);
  return x.what == "tied embedding" ? Part::embedding : communication_part(x.stream);
}

void CaseParts::add_communication(Breakdown& to, const ResultInterval& x, double owned_s) const {
  const Part part = part_of(x);
  const bool collective = is_collective(x.kind);
  double bubble_s = 0, waiting_s = 0;
  if (waits_.places().pipeline > 1) {
    if (part == Part::world && waits_.known()) {
      bubble_s = owned_s * waits_.for_stages(x.rank, x.stream, x.kind);
    } else if (!collective || part == Part::embedding || part == Part::world) {
      bubble_s = std::clamp(length(x) - fastest_.at({part, x.what}), 0.0, owned_s);
    }
    to.parts.add(Part::bubble, bubble_s);
  }
  if (collective && waits_.known() && waits_.places().stage_ranks() > 1) {
    waiting_s = std::min(owned_s - bubble_s, owned_s * waits_.for_members(x.rank, x.stream, x.kind));
    to.parts.add(Part::waiting, waiting_s);
  }
  to.parts.add(part, owned_s - bubble_s - waiting_s);
}

Breakdown CaseParts::one(int role, int rank, const Intervals& intervals) const {
  Breakdown b;
  b.case_index = case_index_;
  b.role = role;
  b.rank = rank;
  const auto split = splits_.find(rank);
  std::vector<Occupant> occupants;
  for (const ResultInterval* x : intervals) {
    b.step_s = std::max(b.step_s, x->end_s);
    // What computation waits for first has the moment: a layer's own communication before that of gradients.
    occupants.push_back({x->start_s, x->end_s, is_communication(x->kind) ? static_cast<int>(part_of(*x)) : 0});
  }
  if (split != splits_.end() && split->second->step_s > 0) b.step_s = split->second->step_s;
  const Occupancy time = occupy(occupants, b.step_s);
  Names kinds, places, overlapped;
  for (std::size_t i = 0; i < intervals.size(); ++i) {
    const ResultInterval& x = *intervals[i];
    const Part part = part_of(x);
    if (is_communication(x.kind)) {
      add_communication(b, x, time.owned_s[i]);
      if (time.hidden_s[i] > 0) overlapped[key_of(part)] += time.hidden_s[i];
      continue;
    }
    b.parts.add(part, time.owned_s[i]);
    if (part == Part::other_compute) kinds[x.kind] += time.owned_s[i];
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
    if (idle_s > 0) places[place_of(gap, intervals)] += idle_s;
  }
  if (split != splits_.end() && split->second->loading_s > b[Part::loading].value_or(0)) {
    overlapped[key_of(Part::loading)] = split->second->loading_s - b[Part::loading].value_or(0);
  }
  b.other_compute = largest_first(kinds);
  b.idle = largest_first(places);
  b.overlapped = largest_first(overlapped);
  return b;
}

// Every role has as many ranks.
Breakdown mean_of(const std::vector<Breakdown>& ranks) {
  Breakdown mean;
  mean.case_index = ranks.front().case_index;
  mean.role = mean.rank = -1;
  const double weight = 1 / static_cast<double>(ranks.size());
  Names kinds, places, overlapped;
  for (const Breakdown& b : ranks) {
    mean.step_s += b.step_s * weight;
    for (std::size_t i = 0; i < part_count; ++i) {
      if (b.parts.seconds[i]) mean.parts.add(part_at(i), *b.parts.seconds[i] * weight);
    }
    for (const auto& [name, s] : b.other_compute) kinds[name] += s * weight;
    for (const auto& [name, s] : b.idle) places[name] += s * weight;
    for (const auto& [name, s] : b.overlapped) overlapped[name] += s * weight;
  }
  mean.other_compute = largest_first(kinds);
  mean.idle = largest_first(places);
  mean.overlapped = largest_first(overlapped);
  return mean;
}

CaseBreakdown CaseParts::all() const {
  CaseBreakdown whole;
  whole.case_index = case_index_;
  for (const auto& [key, intervals] : by_role_) whole.ranks.push_back(one(key.first, key.second, intervals));
  whole.mean = mean_of(whole.ranks);
  double longest = 0;
  for (const auto& [rank, split] : splits_) {
    if (!(split->step_s > longest)) continue;
    longest = split->step_s;
    whole.critical_rank = rank;
  }
  if (whole.critical_rank < 0) {
    const auto at = std::ranges::max_element(whole.ranks, {}, &Breakdown::step_s);
    whole.critical = static_cast<std::size_t>(at - whole.ranks.begin());
    whole.critical_rank = at->rank;
    return whole;
  }
  // Roles are cut along the slowest axis.
  const int of_role = std::max(1, waits_.places().ranks / static_cast<int>(whole.ranks.size()));
  whole.critical =
      std::min(static_cast<std::size_t>(std::max(whole.critical_rank, 0) / of_role), whole.ranks.size() - 1);
  return whole;
}

}  // namespace

double Breakdown::share(Part part) const {
  return step_s > 0 ? parts[part].value_or(0) / step_s : 0;
}

double Breakdown::overlapped_s() const {
  double sum = 0;
  for (const auto& [name, s] : overlapped) sum += name == key_of(Part::loading) ? 0 : s;
  return sum;
}

double unexplained(const Breakdown& breakdown) {
  return breakdown.step_s > 0 ? std::abs(breakdown.step_s - breakdown.parts.sum()) / breakdown.step_s : 0;
}

std::vector<CaseBreakdown> break_down(const Result& result) {
  std::map<int, Intervals> by_case;
  for (const ResultInterval& x : result.timeline) by_case[x.case_index].push_back(&x);
  std::vector<CaseBreakdown> all;
  for (const auto& [case_index, intervals] : by_case) all.push_back(CaseParts(result, case_index, intervals).all());
  return all;
}

const CaseBreakdown* find_breakdown(const std::vector<CaseBreakdown>& all, int case_index) {
  const auto found = std::ranges::find(all, case_index, &CaseBreakdown::case_index);
  return found == all.end() ? nullptr : &*found;
}

}  // namespace harness
