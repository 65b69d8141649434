#pragma once

#include <vector>

#include "launch/job.h"
#include "plan/plan.h"
#include "store/result.h"
#include "sweep/blocks.h"
#include "sweep/progress.h"

namespace harness {

/// What NCCL really did in each case, by its own log, and which requests it did not follow.
struct NcclObservation {
  std::vector<ResultNcclCall> calls;
  std::vector<ResultNcclFact> facts;
  bool interrupted = false;
};
/// One untimed worker per case that communicates, with NCCL's log. Nothing on other backends.
NcclObservation observe(Job& job, const Plan& plan, const BlockDefaults& defaults, ProgressLine& progress);

}  // namespace harness
