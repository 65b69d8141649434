#pragma once

#include <map>
#include <string>
#include <tuple>
#include <vector>

#include "calibrate/calibrate.h"
#include "program/program.h"
#include "program/timeline.h"

namespace harness::calibrate {

/// A profiled step of one rank, by operation.
struct ProfiledStep {
  const program::Program& program;
  std::vector<program::Interval> intervals;

  double seconds(program::OperationId id) const { return intervals[id].end_s - intervals[id].start_s; }
};

/// Collects samples of operations within a step from the profiled steps of all ranks and rounds.
class StepSamples {
 public:
  /// Adds the durations of computations that run alone, and by how much computations and concurrent all-reduces slow
  /// each other down.
  void take_computations(const ProfiledStep& step, config::Precision precision);
  /// Adds the delays from the end of an operation's dependency on another stream to its own start.
  void take_hops(const ProfiledStep& step);
  /// Sets the fields of `m` that follow from the samples. Needs the curves of collectives that run alone.
  void add_to(Measured& m) const;

 private:
  using Samples = std::vector<double>;

  std::map<std::tuple<config::Precision, std::string, double>, Samples> computations_;  // by name and work
  std::map<double, Samples> busy_communications_;  // all-reduces beside computations, by bytes
  Samples hops_, slowed_;
};

}  // namespace harness::calibrate
