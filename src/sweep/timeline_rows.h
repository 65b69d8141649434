#pragma once

#include <vector>

#include "measure/block.h"
#include "program/program.h"
#include "store/result.h"
#include "workloads/limits.h"

namespace harness {

/// What the profiled steps of a case's ranks say, as rows of the result: the intervals of one rank per role, with how
/// long each communication waited; what the operations amount to; the splits and totals of every rank. `set` as the
/// workers ran it, lowered; samples[rank] from BlockMode::timeline.
/// `limits`: of the same set.
void add_timeline(Result& result, int case_index, const ProgramSet& set, const std::vector<BlockSamples>& samples,
                  LeastTimes& limits);

}  // namespace harness
