#pragma once

#include <functional>
#include <span>

#include "program/interval.h"

namespace harness::program {

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
StepSplit split_step(std::span<const Interval> intervals, const std::function<bool(OperationId)>& is_communication,
                     double step_s);

}  // namespace harness::program
