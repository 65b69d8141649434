#pragma once

#include "job/task.h"
#include "worker/steps.h"
#include "workloads/workload.h"

namespace harness::worker {

// The tasks of a block that run steps, from an initialised Executable on. Collective.

/// Warm-up, then the timed steps, with the device watched.
job::TimedSamples time_steps(Steps& steps, int warmup_steps, int timed_steps);

/// Warm-up, then `profiled_steps` steps, all of which are offered. `keeps_intervals`: else only their totals come home.
/// `ranks`: of the block, whose communication durations rank 0 will hold all at once. `gradients`: of this rank.
job::TimelineSamples record_timeline(Steps& steps, int warmup_steps, int profiled_steps, bool keeps_intervals,
                                     int ranks, const std::vector<workloads::GradientPart>& gradients);

/// Runs one more step on numbers whose result is known. Throws Error if it is another.
void check_outputs(const Steps& steps, const workloads::OutputCheck& check);

}  // namespace harness::worker
