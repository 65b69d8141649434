#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "sim/rank_classes.h"

namespace harness::sim {

/// Virtual time in picoseconds: sums of it are exact, and the longest step has a few hours.
using Ticks = std::int64_t;
inline constexpr double ticks_per_second = 1e12;
Ticks ticks_of(double seconds);
inline double seconds_of(Ticks ticks) {
  return static_cast<double>(ticks) / ticks_per_second;
}

/// The cost of one operation on a rank.
struct Cost {
  Ticks alone = 0;  // from start to end with nothing else running; a communication starts when its last member arrives
  Ticks host = 0;   // of the host to issue it: operations are issued one after another, in the order of the list
  /// Fraction of the device unavailable to computation from this rank's arrival at a communication until it ends (its
  /// thread blocks hold multiprocessors and move memory), in [0, 1).
  double takes = 0;
  /// Fraction of its speed that a communication keeps while one of its members computes, in (0, 1].
  double keeps = 1;
  /// Share of a computation's time in which the device computes. An operation that stands for a whole pass
  /// (program/program.h) also waits for communications of its own.
  double computing = 1;
  /// For such an operation, from the end of the last that it waits for to its own; `alone` is then from the end of what
  /// its stream ran before. It ends when both are over. 0: it has one time.
  Ticks from_input = 0;

  /// Whether computations beside it stand still (but for so little that the step ends even if they wait for each
  /// other).
  bool holds() const { return takes >= all_of_it; }
  static constexpr double all_of_it = 0.9999;
};
/// The cost of an operation of a class (a number in RankClasses::list()). Equal for all members of a
/// communication; where it is not, it takes that of the last to arrive.
using CostOf = std::function<Cost(int rank_class, program::OperationId operation)>;

/// When an operation ran on the ranks of a class.
struct OperationTimes {
  Ticks ready = 0;  // its waits and its stream allow it; for a communication: the rank arrives
  Ticks start = 0;  // for a communication: the last member arrives
  Ticks end = 0;
  program::OperationId after = -1;           // whose end it was that made it ready; -1: the host issued it then
  int last_class = -1;                       // of a communication: the class that came last
  program::OperationId last_operation = -1;  // with which it came
};

struct SimulatedStep {
  std::vector<std::vector<OperationTimes>> times;  // by class and operation
  Ticks length = 0;
};

/// One step of a job in virtual time, as discrete events. Each rank's streams run in order, each operation after its
/// waits; the operations of a fused group start together; a communication begins when its last member arrives and ends
/// for all at once. Computations that run at once share the device equally, and computation and communication slow each
/// other as their costs say. Deterministic: the times of a rank do not depend on how ranks are divided into classes.
///
/// The set must be sound (program::verify()): then every operation ends.
SimulatedStep simulate(const RankClasses& classes, const CostOf& cost);

}  // namespace harness::sim
