#pragma once

#include <vector>

#include "job/task.h"
#include "program/program.h"

namespace harness::job {

/// What a profiled step of one rank amounts to: its length until the last operation ended, its totals by kind and
/// stream, its split, and what its communications took, unless those of so many ranks are more than rank 0 should hold.
/// Without the intervals themselves.
TimelineSamples sum_up(const program::Program& program, const std::vector<program::Interval>& intervals, int ranks);

}  // namespace harness::job
