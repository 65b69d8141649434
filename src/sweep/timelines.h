#pragma once

#include "job/job.h"
#include "plan/plan.h"
#include "sweep/blocks.h"
#include "sweep/probe.h"
#include "sweep/progress.h"
#include "sweep/recorder.h"

namespace harness::sweep {

/// So many steps of a case are profiled, and the median is kept. A prediction has one.
inline constexpr int profiled_steps = 5;

/// Runs one untimed worker per case, for its timeline and for an estimate of how long a timed block takes. A case that
/// fails twice in the same way is dropped. Throws Error if that is the baseline. Returns whether it was interrupted.
bool record_timelines(job::Job& job, const plan::Plan& plan, const BlockDefaults& defaults, const Machine& machine,
                      Recorder& recorder, ProgressLine& progress);

}  // namespace harness::sweep
