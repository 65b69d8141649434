#pragma once

#include <functional>
#include <span>
#include <vector>

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

/// How much of one communication a rank spent waiting for partners that came later. Who comes last waits for nobody, so
/// what a member's communication takes beyond the quickest member's is waiting: durations alone tell, and the ranks'
/// clocks need not agree. NaN: not known.
struct Waiting {
  float members_s = 0;  // for ranks on the own pipeline stage
  float stages_s = 0;   // then for other stages, the partner of a send or receive among them
};

/// The duration of each communication of a Program's step by this timeline, in the order of the list; NaN where the
/// timeline lacks it.
std::vector<float> communication_durations(const Program& program, std::span<const Interval> timeline);

/// By rank, then by communication as communication_durations() gives them. durations[rank] may be empty: not measured.
/// The set must be sound (verify()): the n-th communication of a rank in a group meets the others' n-th.
std::vector<std::vector<Waiting>> find_waiting(const ProgramSet& set, std::span<const std::vector<float>> durations);

}  // namespace harness::program
