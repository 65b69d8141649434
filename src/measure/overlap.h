#pragma once

#include <functional>
#include <span>
#include <vector>

#include "backend/backend.h"

namespace harness::measure {

/// From start_s up to, not including, end_s.
struct Stretch {
  double start_s = 0, end_s = 0;
  bool operator==(const Stretch&) const = default;
};
/// Stretches in order that do not touch: what united() gives, and what the others take.
using Stretches = std::vector<Stretch>;

/// The points covered by any of them. Empty and reversed ones cover nothing.
Stretches united(std::vector<Stretch> stretches);
/// The points of `a` that are not in `b`.
Stretches without(const Stretches& a, const Stretches& b);
double length(const Stretches& stretches);

/// Where one rank's step went. compute_s + exposed_s + idle_s = step_s and communication_s = exposed_s + overlapped_s.
struct StepSplit {
  double step_s = 0;
  double compute_s = 0;        // some computation ran
  double communication_s = 0;  // some communication ran
  double exposed_s = 0;        // communication and no computation
  double overlapped_s = 0;     // both
  double idle_s = 0;           // neither
};

/// `intervals` as Executable::run_profiled returns them; what lies outside [0, step_s] is cut off.
StepSplit split_step(std::span<const backend::Interval> intervals,
                     const std::function<bool(program::OperationId)>& is_communication, double step_s);

}  // namespace harness::measure
