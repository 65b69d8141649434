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

/// A stretch of time in which a communication holds the device of a rank and computations stand still.
struct Held {
  Ticks from = 0, to = 0;
  program::OperationId by = -1;  // the communication that ends with it
};

/// Returns the stretches of a class: sorted, and none touches the next.
std::vector<Held> held(const SimulatedStep& step, const RankClasses& classes, const CostOf& cost, int rank_class);

/// Returns when a computation ran: from ready to end, less `held`. At least one stretch, possibly empty.
std::vector<std::pair<Ticks, Ticks>> running(const OperationTimes& computation, std::span<const Held> held);

/// Returns the intervals of a class in the form of Executable::run_profiled(). A computation that a communication holds
/// up has one interval before and one after it.
std::vector<program::Interval> intervals_of(const SimulatedStep& step, const RankClasses& classes,
                                            std::span<const Held> held, int rank_class);

/// Returns the last stretch held between this computation's ready time and its end; nullptr if there is none.
const Held* held_up(const OperationTimes& computation, std::span<const Held> held);

/// The chain of operations that determines a step's length: from its end back through whatever made each operation
/// ready, to the beginning. Nothing on it waits: where a communication waits for its last member, the chain continues
/// with that member. Operations off the path can become faster without effect; slower ones on it lengthen the step.
struct CriticalPath {
  std::array<Ticks, part_count> parts{};  // time of its operations running alone
  Ticks slowed = 0;                       // extra time beside others that share the device or the links
  Ticks host = 0;                         // until the host issued the first of them

  Ticks length() const { return std::accumulate(parts.begin(), parts.end(), slowed + host); }
  Ticks& operator[](Part part) { return parts[index_of(part)]; }
  Ticks operator[](Part part) const { return parts[index_of(part)]; }
};

/// Returns the path through a pass by itself, for an operation that stands for one.
using PathThrough = std::function<const CriticalPath&(int rank_class, program::OperationId operation)>;

/// Returns the path of a step that was simulated with these costs; its length() is the step's. `held`, by class: a
/// computation that was held up waited for that communication. `through`: for steps with folded passes.
CriticalPath critical_path(const SimulatedStep& step, const RankClasses& classes, const CostOf& cost,
                           const std::vector<std::vector<Held>>& held = {}, const PathThrough& through = {});

/// Returns its shares, the largest first, without those that round to zero: "matrix products 61.0 %, data communication
/// 21.0 %, host 18.0 %".
std::string in_words(const CriticalPath& path);

}  // namespace harness::sim
