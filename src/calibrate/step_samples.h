#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <tuple>
#include <vector>

#include "calibrate/measure.h"
#include "program/program.h"
#include "program/timeline.h"

namespace harness::calibrate {

/// A profiled step of one rank, by operation.
struct ProfiledStep {
  const program::Program& program;
  std::vector<program::Interval> intervals;

  double seconds(program::OperationId id) const { return intervals[id].end_s - intervals[id].start_s; }
};

/// What the profiled steps of all ranks and rounds say of operations as they run in a step.
class StepSamples {
 public:
  /// What computations take that run alone, and by how much they and the all-reduces beside them slow each other down.
  void take_computations(const ProfiledStep& step, config::Precision precision);
  /// From the end of what an operation waited for on another stream to its own start.
  void take_hops(const ProfiledStep& step);
  /// Sets what follows from them. Needs the curves of collectives that run alone.
  void add_to(Measured& m) const;

 private:
  using Samples = std::vector<double>;
  void take_computing(const program::Action& action, double seconds, config::Precision precision);

  std::map<std::tuple<config::Precision, std::string, double>, Samples> computations_;  // by name and work
  std::map<std::tuple<config::Precision, std::int64_t, std::int64_t, std::int64_t>, Samples> products_;  // m, n, k
  std::map<std::tuple<config::Precision, std::int64_t, bool, double>, Samples> attentions_;  // keys, backward, flop
  std::map<double, Samples> busy_communications_;  // all-reduces beside computations, by bytes
  Samples hops_, slowed_;
};

}  // namespace harness::calibrate
