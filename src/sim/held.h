#pragma once

#include <span>
#include <utility>
#include <vector>

#include "sim/engine.h"

namespace harness::sim {

/// A stretch of time in which a communication holds the device of a rank, so that computations stand still.
struct Held {
  Ticks from = 0, to = 0;
  program::OperationId by = -1;  // the one that ended at its end
};

/// The stretches of the ranks of a class: in order, none touches the next.
std::vector<Held> held(const SimulatedStep& step, const RankClasses& classes, const CostOf& cost, int rank_class);

/// When a computation ran: from when it was ready to its end, but for what was `held`. At least one stretch, if an
/// empty one.
std::vector<std::pair<Ticks, Ticks>> running(const OperationTimes& computation, std::span<const Held> held);

/// The last of what was held before this computation's end, and after it was ready; nullptr: nothing was.
const Held* held_up(const OperationTimes& computation, std::span<const Held> held);

}  // namespace harness::sim
