#pragma once

#include <array>
#include <functional>
#include <numeric>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "base/part.h"
#include "program/timeline.h"
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

/// Intervals of the ranks of a class, as Executable::run_profiled() gives a measured step's, but that a computation
/// which stood still while a communication held the device has an interval before and one after.
std::vector<program::Interval> intervals_of(const SimulatedStep& step, const RankClasses& classes,
                                            std::span<const Held> held, int rank_class);

/// The last of what was held before this computation's end, and after it was ready; nullptr: nothing was.
const Held* held_up(const OperationTimes& computation, std::span<const Held> held);

/// The chain of operations that a step's length follows from: from its end back, each operation, then whatever it was
/// that made it ready, to the beginning. Nothing on it waits: where members of a communication waited for the one that
/// came last, the chain goes on with that one. So what is not on it can become faster without effect, and what is on it
/// can become slower only at the step's cost.
struct CriticalPath {
  std::array<Ticks, part_count> parts{};  // what its operations take alone
  Ticks slowed = 0;  // what they took longer, beside others that they share the device or the links with
  Ticks host = 0;    // until the host had issued the first of them

  Ticks length() const { return std::accumulate(parts.begin(), parts.end(), slowed + host); }
  Ticks& operator[](Part part) { return parts[index_of(part)]; }
  Ticks operator[](Part part) const { return parts[index_of(part)]; }
};

/// The path through a pass by itself, of an operation that stands for one.
using PathThrough = std::function<const CriticalPath&(int rank_class, program::OperationId operation)>;

/// The path of a step that was simulated with these costs; its length() is the step's. `held`, by class: a computation
/// that was held up waited for the communication that held it. `through`: where the step has folded passes.
CriticalPath critical_path(const SimulatedStep& step, const RankClasses& classes, const CostOf& cost,
                           const std::vector<std::vector<Held>>& held = {}, const PathThrough& through = {});

/// "matrix products 61.0 %, data communication 21.0 %, host 18.0 %": shares of it, the largest first; what rounds to
/// nothing is left out.
std::string in_words(const CriticalPath& path);

}  // namespace harness::sim
