#include "analysis/step_parts.h"

#include <algorithm>
#include <map>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

namespace harness::analysis {
namespace {

template <class Key>
std::vector<std::pair<Key, double>> largest_first(const std::map<Key, double>& seconds) {
  std::vector<std::pair<Key, double>> sorted(seconds.begin(), seconds.end());
  std::ranges::stable_sort(sorted, std::ranges::greater(), &std::pair<Key, double>::second);
  return sorted;
}

// Sums up the lists that a Breakdown holds in addition to its parts. The keys are texts of what is summed up.
struct Lists {
  std::map<std::string_view, double> other_compute;
  std::map<IdlePlace, double> idle;
  std::map<Part, double> overlapped;
  std::map<std::tuple<std::string_view, std::string_view, bool>, KindTime> kinds;

  void add(std::string_view kind, std::string_view group, bool recomputed, double takes_s, double owns_s) {
    const auto [entry, added] = kinds.try_emplace({kind, group, recomputed});
    KindTime& sum = entry->second;
    if (added) sum = {std::string(kind), std::string(group), recomputed};
    sum.takes_s += takes_s;
    sum.owns_s += owns_s;
  }
  void write_to(Breakdown& breakdown) const {
    for (const auto& [kind, s] : largest_first(other_compute)) breakdown.other_compute.emplace_back(kind, s);
    breakdown.idle = largest_first(idle);
    breakdown.overlapped = largest_first(overlapped);
    for (const auto& [key, time] : kinds) breakdown.kinds.push_back(time);
  }
};

// A stretch of an operation that belongs to one part.
struct Piece {
  const StepOperation* of = nullptr;
  std::optional<Part> part;
};

bool computes(const StepOperation& operation) {
  return operation.part && is_computation(*operation.part);
}
bool communicates(const StepOperation& operation) {
  return operation.part && !is_computation(*operation.part);
}

// Decides which of several running operations a moment counts for; the lowest number wins.
int priority_of(const StepOperation& operation) {
  if (computes(operation)) return operation.main ? 0 : 1;
  return 2 + static_cast<int>(operation.part ? index_of(*operation.part) : part_count);
}

// A communication waits for the latest of its partners first, and then goes on.
void add_pieces(const StepOperation& operation, std::vector<Piece>& pieces, std::vector<Occupant>& occupants) {
  double start_s = operation.start_s;
  const auto add = [&](std::optional<Part> part, double end_s) {
    pieces.push_back({&operation, part});
    occupants.push_back({start_s, end_s, priority_of(operation), computes(operation)});
    start_s = end_s;
  };
  const auto within = [&](double seconds) {
    return std::clamp(start_s + seconds, start_s, std::max(start_s, operation.end_s));
  };
  if (std::isfinite(operation.waiting_s)) add(Part::waiting, within(operation.waiting_s));
  if (std::isfinite(operation.bubble_s)) add(Part::bubble, within(operation.bubble_s));
  add(operation.part, operation.end_s);
}

// Nothing between operations whose phases are not known.
std::optional<IdlePlace> place_of(const Gap& gap, const std::vector<Piece>& pieces) {
  using enum IdlePlace::Kind;
  if (!gap.before) return IdlePlace{.kind = before_first};
  if (!gap.after) return IdlePlace{.kind = after_last};
  const StepOperation &before = *pieces[*gap.before].of, &after = *pieces[*gap.after].of;
  if (before.phase.empty() || after.phase.empty()) return std::nullopt;
  if (communicates(before) && communicates(after)) return IdlePlace{.kind = between_collectives};
  return IdlePlace{before.phase == after.phase ? within_phase : between_phases, std::string(before.phase),
                   std::string(after.phase)};
}

}  // namespace

DividedStep divide_step(std::span<const StepOperation> operations, double step_s, double loading_s) {
  DividedStep step;
  Breakdown& b = step.breakdown;
  b.step_s = step_s;
  std::vector<Piece> pieces;
  std::vector<Occupant> occupants;
  for (const StepOperation& operation : operations) add_pieces(operation, pieces, occupants);
  const Occupancy time = occupy(occupants, step_s);
  Lists lists;
  for (std::size_t i = 0; i < pieces.size(); ++i) {
    const auto& [of, part] = pieces[i];
    if (!part) {
      step.no_part_s += time.owned_s[i];
      continue;
    }
    b.parts.add(*part, time.owned_s[i]);
    if (*part == Part::other_compute) lists.other_compute[of->kind] += time.owned_s[i];
    if (time.hidden_s[i] > 0) lists.overlapped[*of->part] += time.hidden_s[i];
    const double takes_s = std::max(0.0, occupants[i].end_s - occupants[i].start_s);
    if (*part == Part::waiting || *part == Part::bubble) {
      step.waits_s += takes_s;
    } else {
      lists.add(of->kind, of->group, of->recomputed, takes_s, time.owned_s[i]);
    }
  }
  b.parts.add(Part::idle, 0);
  for (const Gap& gap : time.gaps) {
    double idle_s = gap.end_s - gap.start_s;
    if (gap.start_s <= 0 && std::isfinite(loading_s)) {
      const double loads_s = std::clamp(loading_s, 0.0, idle_s);
      b.parts.add(Part::loading, loads_s);
      idle_s -= loads_s;
    }
    b.parts.add(Part::idle, idle_s);
    const std::optional<IdlePlace> place = place_of(gap, pieces);
    if (place && idle_s > 0) lists.idle[*place] += idle_s;
  }
  const double first_s = b[Part::loading].value_or(0);
  if (loading_s > first_s) lists.overlapped[Part::loading] = loading_s - first_s;
  lists.write_to(b);
  return step;
}

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
    for (const KindTime& k : b.kinds) lists.add(k.kind, k.group, k.recomputed, k.takes_s * weight, k.owns_s * weight);
  }
  lists.write_to(mean);
  return mean;
}

}  // namespace harness::analysis
