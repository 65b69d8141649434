#include "sim/critical_path.h"

#include <fmt/format.h>
#include <algorithm>
#include <cmath>
#include <cstddef>

#include "base/text.h"
#include "base/units.h"
#include "program/program.h"

namespace harness::sim {

std::vector<Held> held(const SimulatedStep& step, const RankClasses& classes, const CostOf& cost, int rank_class) {
  const std::vector<program::Operation>& list = classes.program(rank_class).step;
  std::vector<Held> all;
  for (program::OperationId id = 0; std::cmp_less(id, list.size()); ++id) {
    if (!program::is_communication(list[id].action) || !cost(rank_class, id).holds()) continue;
    const OperationTimes& times = step.times[rank_class][id];
    if (times.ready < times.end) all.push_back({times.ready, times.end, id});
  }
  std::ranges::sort(all, {}, &Held::from);
  std::vector<Held> united;
  for (const Held& next : all) {
    if (united.empty() || next.from > united.back().to) {
      united.push_back(next);
    } else if (next.to > united.back().to) {
      united.back().to = next.to;
      united.back().by = next.by;
    }
  }
  return united;
}

std::vector<std::pair<Ticks, Ticks>> running(const OperationTimes& computation, std::span<const Held> held) {
  std::vector<std::pair<Ticks, Ticks>> stretches;
  Ticks from = computation.ready;
  for (auto it = std::ranges::upper_bound(held, from, {}, &Held::to); it != held.end() && it->from < computation.end;
       ++it) {
    if (from < it->from) stretches.emplace_back(from, it->from);
    from = std::min(it->to, computation.end);
  }
  if (from < computation.end || stretches.empty()) stretches.emplace_back(from, computation.end);
  return stretches;
}

std::vector<program::Interval> intervals_of(const SimulatedStep& step, const RankClasses& classes,
                                            std::span<const Held> held, int rank_class) {
  const std::vector<program::Operation>& list = classes.program(rank_class).step;
  const std::vector<OperationTimes>& times = step.times[rank_class];
  std::vector<program::Interval> intervals;
  intervals.reserve(times.size());
  for (program::OperationId id = 0; std::cmp_less(id, times.size()); ++id) {
    const program::Operation& op = list[id];
    if (program::is_communication(op.action)) {
      intervals.push_back({id, op.stream, seconds_of(times[id].ready), seconds_of(times[id].end)});
      continue;
    }
    for (const auto& [from, to] : running(times[id], held))
      intervals.push_back({id, op.stream, seconds_of(from), seconds_of(to)});
  }
  return intervals;
}

const Held* held_up(const OperationTimes& computation, std::span<const Held> held) {
  const auto after = std::ranges::upper_bound(held, computation.end, {}, &Held::to);
  if (after == held.begin()) return nullptr;
  const Held& last = *(after - 1);
  return last.to > computation.ready ? &last : nullptr;
}

namespace {

using program::Operation;
using program::OperationId;

Part part_of(const program::ProgramSet& set, const Operation& op) {
  if (!program::is_communication(op.action)) return computation_part(program::name_of(op.action), op.label.recomputed);
  if (const program::Peer* peer = program::peer_of(op.action))
    return communication_part(program::name_of(peer->axis), false);
  const program::Group& group = set.groups[program::group_of(op.action)];
  return communication_part(group.name, op.label.phase == program::Phase::finish);
}

// Returns the operation that ends last.
std::pair<int, OperationId> last_of(const SimulatedStep& step) {
  for (int c = 0; std::cmp_less(c, step.times.size()); ++c) {
    const std::vector<OperationTimes>& times = step.times[c];
    for (OperationId id = static_cast<OperationId>(times.size()) - 1; id >= 0; --id) {
      if (times[id].end == step.length) return {c, id};
    }
  }
  return {0, -1};
}

// Divides the time of a pass running alone in the proportions of the path through it.
void add_pass(CriticalPath& path, Ticks alone, const CriticalPath& through) {
  const double share = static_cast<double>(alone) / static_cast<double>(through.length());
  Ticks rest = alone;
  for (const Part part : all_parts) {
    const Ticks own = std::llround(share * static_cast<double>(through[part]));
    path[part] += own;
    rest -= own;
  }
  path.slowed += rest;
}

}  // namespace

CriticalPath critical_path(const SimulatedStep& step, const RankClasses& classes, const CostOf& cost,
                           const std::vector<std::vector<Held>>& held, const PathThrough& through) {
  CriticalPath path;
  auto [c, id] = last_of(step);
  while (id >= 0) {
    const OperationTimes& times = step.times[c][id];
    const Operation& op = classes.program(c).step[id];
    const Held* held_by = held.empty() || program::is_communication(op.action)
                              ? nullptr
                              : held_up(times, held[static_cast<std::size_t>(c)]);
    const Ticks took = times.end - (held_by != nullptr ? held_by->to : times.start);
    const Cost own = cost(c, id);
    const Ticks alone = std::min(took, std::max(own.alone, own.from_input));
    if (program::is_folded(op)) {
      add_pass(path, alone, through(c, id));
    } else {
      path[part_of(classes.set(), op)] += alone;
    }
    path.slowed += took - alone;
    if (held_by != nullptr) {
      id = held_by->by;
      continue;
    }
    if (times.last_class >= 0) {
      c = times.last_class;
      id = times.last_operation;
    }
    const OperationTimes& began = step.times[c][id];
    if (began.after < 0) path.host = began.ready;
    id = began.after;
  }
  return path;
}

std::string in_words(const CriticalPath& path) {
  std::vector<std::pair<Ticks, std::string>> shares{{path.slowed, "slowed by what runs beside"}, {path.host, "host"}};
  for (const Part part : all_parts) shares.emplace_back(path[part], name_of(part));
  std::ranges::stable_sort(shares, std::greater<>(), [](const auto& share) { return share.first; });
  const auto whole = static_cast<double>(path.length());
  constexpr double least = 0.0005;
  std::vector<std::string> words;
  for (const auto& [ticks, name] : shares) {
    const double share = static_cast<double>(ticks) / whole;
    if (share >= least) words.push_back(fmt::format("{} {}", name, percent(share)));
  }
  return join(words, ", ");
}

}  // namespace harness::sim
