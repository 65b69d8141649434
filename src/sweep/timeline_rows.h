#pragma once

#include <vector>

#include "job/job.h"
#include "program/links.h"
#include "program/program.h"
#include "store/result.h"

namespace harness::sweep {

/// Adds the profiled steps of a case's ranks to the result: the intervals of the ranks that kept them, with how long
/// each communication waited; the sums of the operations; the splits and totals of every rank. `set` as the workers ran
/// it, lowered; samples[rank]: TimelineSamples; `limits` of the same set.
void add_timeline(store::Result& result, int case_index, const program::ProgramSet& set,
                  const std::vector<job::Samples>& samples, program::LeastTimes& limits);

}  // namespace harness::sweep
