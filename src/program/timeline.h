#pragma once

#include <functional>
#include <span>
#include <vector>

#include "program/program.h"

namespace harness::program {

/// An executed operation of a step, or one of the successive stretches in which it ran. Times in seconds since the step
/// began on its rank.
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

/// Splits a step. `intervals` as Executable::run_profiled returns them, clipped to [0, step_s].
StepSplit split_step(std::span<const Interval> intervals, const std::function<bool(OperationId)>& is_communication,
                     double step_s);

/// Time that a rank spends in one communication waiting for later partners. The last member to arrive waits for none,
/// so each member waits for as long as its communication takes longer than the quickest member's. Durations suffice:
/// the ranks' clocks need not agree. NaN: not known.
struct Waiting {
  float members_s = 0;  // for ranks of its own pipeline stage
  float stages_s = 0;   // then for other stages, including the partner of a send or receive
};

/// Returns the duration of each communication of a Program's step in this timeline, in list order; NaN if the timeline
/// lacks it.
std::vector<float> communication_durations(const Program& program, std::span<const Interval> timeline);

/// Returns the waiting by rank, then by communication in the order of communication_durations(). durations[rank] may be
/// empty: not measured. The set must pass verify(): a rank's n-th communication in a group meets the others' n-th.
std::vector<std::vector<Waiting>> find_waiting(const ProgramSet& set, std::span<const std::vector<float>> durations);

}  // namespace harness::program
