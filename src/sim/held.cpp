#include "sim/held.h"

#include <algorithm>

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

const Held* held_up(const OperationTimes& computation, std::span<const Held> held) {
  const auto after = std::ranges::upper_bound(held, computation.end, {}, &Held::to);
  if (after == held.begin()) return nullptr;
  const Held& last = *(after - 1);
  return last.to > computation.ready ? &last : nullptr;
}

}  // namespace harness::sim
