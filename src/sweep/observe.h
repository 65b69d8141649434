#pragma once

#include <vector>

#include "job/job.h"
#include "plan/plan.h"
#include "store/result.h"
#include "sweep/blocks.h"
#include "sweep/progress.h"

namespace harness::sweep {

/// What NCCL did in each case, according to its log, and which requests it did not follow.
struct NcclObservation {
  std::vector<store::ResultNcclCall> calls;
  std::vector<store::ResultNcclFact> facts;
  bool interrupted = false;
};
/// One untimed worker per case that communicates, with NCCL's log. Nothing on other backends.
NcclObservation observe(job::Job& job, const plan::Plan& plan, const BlockDefaults& defaults, ProgressLine& progress);

}  // namespace harness::sweep
