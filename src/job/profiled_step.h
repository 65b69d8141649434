#pragma once

#include <span>
#include <vector>

#include "job/task.h"
#include "program/program.h"

namespace harness::job {

/// What a profiled step of one rank amounts to: its length until the last operation ended, its totals by kind and
/// stream, its split, and what its communications took, unless those of so many ranks are more than rank 0 should hold.
/// Without the intervals themselves.
ProfiledStep sum_up(const program::Program& program, const std::vector<program::Interval>& intervals, int ranks);

/// Keeps of the steps that a worker offers the median by length, and says how long all of them took. step_s: of the
/// slowest rank in each of them, the same on all ranks, so that all keep the same step.
void choose_step(TimelineSamples& samples, std::span<const double> step_s);

}  // namespace harness::job
