// A profiled step, placed on tracks and divided among its operations.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

#include "analysis/breakdown.h"

namespace harness::analysis {

bool is_collective(std::string_view kind) {
  constexpr std::array<std::string_view, 4> kinds{"all_reduce", "all_gather", "reduce_scatter", "all_to_all"};
  return std::ranges::find(kinds, kind) != kinds.end();
}

bool is_communication(std::string_view kind) {
  return is_collective(kind) || kind == "send" || kind == "receive";
}

double Parts::sum(bool (*wanted)(Part)) const {
  double total = 0;
  for (const Part part : all_parts) {
    if (wanted(part)) total += (*this)[part].value_or(0);
  }
  return total;
}

namespace {

constexpr std::string_view closing_stream = "world";

// Returns the shift of each rank's times. Empty if a rank has no closing all-reduce.
std::map<std::int32_t, double> shifts_of(const std::vector<DrawnInterval>& intervals) {
  std::map<std::int32_t, double> closed_s;  // NaN until it is found
  for (const DrawnInterval& x : intervals) {
    double& end_s = closed_s.emplace(x.row->rank, NAN).first->second;
    if (x.row->stream == closing_stream && is_collective(x.row->kind)) end_s = std::fmax(end_s, x.end_s);
  }
  double last_s = 0;
  for (const auto& [rank, end_s] : closed_s) {
    if (std::isnan(end_s)) return {};
    last_s = std::max(last_s, end_s);
  }
  for (auto& [rank, end_s] : closed_s) end_s = last_s - end_s;
  return closed_s;
}

// Moves each interval to the first track of its name that is free at its start. Intervals must be in order of start.
void part_overlaps(std::vector<DrawnInterval>& intervals) {
  std::map<std::pair<std::int32_t, std::string>, std::vector<double>> free_from_s;
  for (DrawnInterval& x : intervals) {
    std::vector<double>& tracks = free_from_s[{x.row->rank, x.track}];
    const auto free = std::ranges::find_if(tracks, [&](double from_s) { return from_s <= x.start_s; });
    const auto number = free - tracks.begin() + 1;
    if (free == tracks.end()) {
      tracks.push_back(x.end_s);
    } else {
      *free = x.end_s;
    }
    if (number > 1) x.track += fmt::format(" ({})", number);
  }
}

// A stretch of an operation that belongs to one part and competes for moments of the step.
struct Piece {
  const StepOperation* of = nullptr;
  std::optional<Part> part;
  double start_s = 0, end_s = 0;
  int priority = 0;     // the lowest of those running gets the moment
  double owned_s = 0;   // the moments that it got
  double hidden_s = 0;  // it ran while a computation of lower number had the moment
};

// A stretch in which nothing ran.
struct Gap {
  double start_s = 0, end_s = 0;
  const Piece *before = nullptr, *after = nullptr;  // owners of the moments before and after
};

bool computes(const StepOperation& operation) {
  return operation.part && is_computation(*operation.part);
}
bool communicates(const StepOperation& operation) {
  return operation.part && !is_computation(*operation.part);
}

// Splits off the waiting at the start of a communication, for the latest of its partners.
void add_pieces(const StepOperation& operation, std::vector<Piece>& pieces) {
  double start_s = operation.start_s;
  int priority = 2 + static_cast<int>(operation.part ? index_of(*operation.part) : part_count);
  if (computes(operation)) priority = operation.main ? 0 : 1;
  const auto add = [&](std::optional<Part> part, double end_s) {
    pieces.push_back({&operation, part, start_s, end_s, priority});
    start_s = end_s;
  };
  const auto within = [&](double seconds) {
    return std::clamp(start_s + seconds, start_s, std::max(start_s, operation.end_s));
  };
  if (std::isfinite(operation.waiting_s)) add(Part::waiting, within(operation.waiting_s));
  if (std::isfinite(operation.bubble_s)) add(Part::bubble, within(operation.bubble_s));
  add(operation.part, operation.end_s);
}

struct Event {
  double at_s;
  bool begins;
  Piece* piece;
};

std::vector<Event> events_of(std::span<Piece> pieces, double step_s) {
  std::vector<Event> events;
  for (Piece& piece : pieces) {
    const double start = std::max(piece.start_s, 0.0), end = std::min(piece.end_s, step_s);
    if (!(start < end)) continue;  // NaN too
    events.push_back({start, true, &piece});
    events.push_back({end, false, &piece});
  }
  std::sort(events.begin(), events.end(), [](const Event& a, const Event& b) {
    return std::pair(a.at_s, a.begins) < std::pair(b.at_s, b.begins);  // ends first
  });
  return events;
}

// Divides [0, step_s] among the pieces and returns what is left: every moment belongs to one piece or to a gap, so
// owned_s and the gaps add up to step_s. Ignores times outside it and NaN.
std::vector<Gap> occupy(std::span<Piece> pieces, double step_s) {
  std::vector<Gap> gaps;
  std::set<std::pair<int, Piece*>> running;  // by priority, then in the order of the pieces
  const Piece* last = nullptr;
  double now = 0;
  const auto advance = [&](double to) {
    if (to <= now) return;
    if (running.empty()) {
      gaps.push_back({now, to, last, nullptr});
    } else {
      Piece& owner = *running.begin()->second;
      last = &owner;
      owner.owned_s += to - now;
      for (const auto& [priority, piece] : running) {
        if (computes(*owner.of) && priority > owner.priority) piece->hidden_s += to - now;
      }
    }
    now = to;
  };
  for (const Event& event : events_of(pieces, step_s)) {
    const bool ends_gap = running.empty() && event.at_s > now;
    advance(event.at_s);
    if (ends_gap) gaps.back().after = event.piece;
    const std::pair key(event.piece->priority, event.piece);
    if (event.begins) {
      running.insert(key);
    } else {
      running.erase(key);
    }
  }
  advance(step_s);
  return gaps;
}

template <class Key>
std::vector<std::pair<Key, double>> largest_first(const std::map<Key, double>& seconds) {
  std::vector<std::pair<Key, double>> sorted(seconds.begin(), seconds.end());
  std::ranges::stable_sort(sorted, std::ranges::greater(), &std::pair<Key, double>::second);
  return sorted;
}

// Accumulates the lists that a Breakdown holds besides its parts. Keys refer to texts of the inputs.
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

// Returns nothing between operations with unknown phases.
std::optional<IdlePlace> place_of(const Gap& gap) {
  using enum IdlePlace::Kind;
  if (gap.before == nullptr) return IdlePlace{.kind = before_first};
  if (gap.after == nullptr) return IdlePlace{.kind = after_last};
  const StepOperation &before = *gap.before->of, &after = *gap.after->of;
  if (before.phase.empty() || after.phase.empty()) return std::nullopt;
  if (communicates(before) && communicates(after)) return IdlePlace{.kind = between_collectives};
  return IdlePlace{before.phase == after.phase ? within_phase : between_phases, std::string(before.phase),
                   std::string(after.phase)};
}

}  // namespace

// Files without /timeline_operations do not record the group of an operation. It then follows from the stream's name,
// except for this label of the GPT step.
constexpr std::string_view tied_embedding = "tied embedding";

GroupsOf::GroupsOf(const store::Result& result, std::int32_t case_index) {
  for (const store::ResultOperations& row : result.operations) {
    if (row.case_index == case_index) groups_[{row.role, row.stream, row.kind, row.what}] = row.group;
  }
}

std::string_view GroupsOf::operator()(const store::ResultInterval& x) const {
  if (!is_communication(x.kind)) return "";
  const auto found = groups_.find({x.role, x.stream, x.kind, x.what});
  if (found != groups_.end() && !found->second.empty()) return found->second;
  return x.what == tied_embedding ? std::string_view(key_of(Part::embedding)) : x.stream;
}

DrawnStep drawn_step(const store::Result& result, std::int32_t case_index) {
  DrawnStep step;
  for (const store::ResultInterval& row : result.timeline) {
    const bool drawable = std::isfinite(row.start_s) && std::isfinite(row.end_s) && row.end_s >= row.start_s;
    if (row.case_index != case_index || !drawable) continue;
    const bool directed = row.kind == "send" || row.kind == "receive";
    step.intervals.push_back({&row, row.start_s, row.end_s, directed ? row.stream + " " + row.kind : row.stream});
  }
  const std::map<std::int32_t, double> shifts = shifts_of(step.intervals);
  step.one_clock = !shifts.empty();
  for (DrawnInterval& x : step.intervals) {
    const double shift_s = step.one_clock ? shifts.at(x.row->rank) : 0;
    x.start_s += shift_s;
    x.end_s += shift_s;
  }
  std::ranges::stable_sort(step.intervals, {}, [](const DrawnInterval& x) {
    return std::tuple(x.row->rank, x.start_s, -x.end_s);  // the longer one first
  });
  part_overlaps(step.intervals);
  return step;
}

DividedStep divide_step(std::span<const StepOperation> operations, double step_s, double loading_s) {
  DividedStep step;
  Breakdown& b = step.breakdown;
  b.step_s = step_s;
  std::vector<Piece> pieces;
  for (const StepOperation& operation : operations) add_pieces(operation, pieces);
  const std::vector<Gap> gaps = occupy(pieces, step_s);
  Lists lists;
  for (const Piece& piece : pieces) {
    if (!piece.part) {
      step.no_part_s += piece.owned_s;
      continue;
    }
    const StepOperation& of = *piece.of;
    b.parts.add(*piece.part, piece.owned_s);
    if (piece.part == Part::other_compute) lists.other_compute[of.kind] += piece.owned_s;
    if (piece.hidden_s > 0) lists.overlapped[*of.part] += piece.hidden_s;
    const double takes_s = std::max(0.0, piece.end_s - piece.start_s);
    if (piece.part == Part::waiting || piece.part == Part::bubble) {
      step.waits_s += takes_s;
    } else {
      lists.add(of.kind, of.group, of.recomputed, takes_s, piece.owned_s);
    }
  }
  b.parts.add(Part::idle, 0);
  for (const Gap& gap : gaps) {
    double idle_s = gap.end_s - gap.start_s;
    if (gap.start_s <= 0 && std::isfinite(loading_s)) {
      const double loads_s = std::clamp(loading_s, 0.0, idle_s);
      b.parts.add(Part::loading, loads_s);
      idle_s -= loads_s;
    }
    b.parts.add(Part::idle, idle_s);
    const std::optional<IdlePlace> place = place_of(gap);
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
