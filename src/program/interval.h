#pragma once

#include <functional>
#include <span>

#include "program/program.h"

namespace harness::program {

/// An executed operation of a step, or one of the stretches in which it ran: those follow each other. Times in seconds
/// since the step began on its rank.
struct Interval {
  OperationId operation = 0;  // in the lowered step list
  StreamId stream = 0;
  double start_s = 0, end_s = 0;  // for a communication: from when its inputs were ready and its stream free
};

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
