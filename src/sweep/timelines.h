#pragma once

#include "launch/job.h"
#include "plan/plan.h"
#include "sweep/blocks.h"
#include "sweep/probe.h"
#include "sweep/progress.h"
#include "sweep/recorder.h"

namespace harness {

/// One untimed worker per case: its timeline and, as the guess for timed blocks, how long it takes. A case that fails
/// twice alike is dropped. Throws Error if that is the baseline. Returns whether it was interrupted.
bool record_timelines(Job& job, const Plan& plan, const BlockDefaults& defaults, const Machine& machine,
                      Recorder& recorder, ProgressLine& progress);

}  // namespace harness
