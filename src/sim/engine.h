#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "sim/rank_classes.h"

namespace harness::sim {

/// Virtual time in picoseconds: sums are exact, and the longest steps take a few hours.
using Ticks = std::int64_t;
inline constexpr double ticks_per_second = 1e12;
/// Throws NotPredicted beyond 278 hours, of which 64 bits hold the sum of a few.
Ticks ticks_of(double seconds);
inline double seconds_of(Ticks ticks) {
  return static_cast<double>(ticks) / ticks_per_second;
}

/// The cost of one operation on a rank.
struct Cost {
  Ticks alone = 0;  // from start to end with nothing else running; a communication starts when its last member arrives
  Ticks host = 0;   // host time to issue it; the host issues operations one after another, in list order
  /// Fraction of the device unavailable to computation from this rank's arrival at a communication until it ends (its
  /// thread blocks hold multiprocessors and move memory), in [0, 1).
  double takes = 0;
  /// Fraction of its speed that a communication keeps while one of its members computes, in (0, 1].
  double keeps = 1;
  /// Share of a computation's time in which the device computes. An operation that stands for a whole pass
  /// (program/program.h) also waits for its own communications.
  double computing = 1;
  /// For such an operation: from the end of the last operation in its waits to its own end; `alone` then starts at the
  /// end of the previous operation on its stream. It ends when both are over. 0: `alone` is its only time.
  Ticks from_input = 0;

  /// Whether computations beside it stand still: they keep a tiny rate, so that a step with mutual waits still ends.
  bool holds() const { return takes >= all_of_it; }
  static constexpr double all_of_it = 0.9999;
};
/// The cost of an operation of a class (an index into RankClasses::list()). Equal for all members of a communication;
/// otherwise the cost of the last to arrive counts.
using CostOf = std::function<Cost(int rank_class, program::OperationId operation)>;

/// When an operation ran on the ranks of a class.
struct OperationTimes {
  Ticks ready = 0;  // its waits and its stream allow it; for a communication: this rank arrives
  Ticks start = 0;  // for a communication: the last member arrives
  Ticks end = 0;
  program::OperationId after = -1;           // the operation whose end made it ready; -1: the host issued it then
  int last_class = -1;                       // for a communication: the class that arrived last,
  program::OperationId last_operation = -1;  // and the operation with which it arrived
};

struct SimulatedStep {
  std::vector<std::vector<OperationTimes>> times;  // by class and operation
  Ticks length = 0;
};

/// Simulates one step of a job in virtual time, as discrete events. Each rank's streams run in order, each operation
/// after its waits; the operations of a fused group start together; a communication begins when its last member arrives
/// and ends for all members at once. Concurrent computations share the device equally; computation and communication
/// slow each other down as their costs say. Deterministic: the times of a rank do not depend on how ranks are divided
/// into classes.
///
/// The set must be sound (program::verify()): then every operation ends. Throws NotPredicted beyond 278 hours.
SimulatedStep simulate(const RankClasses& classes, const CostOf& cost);

}  // namespace harness::sim
