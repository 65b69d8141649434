#pragma once

#include "config/experiment.h"
#include "launch/job.h"
#include "plan/plan.h"
#include "sweep/blocks.h"
#include "sweep/progress.h"
#include "sweep/recorder.h"

namespace harness {

/// Fits the rounds into the budget of time, before there is a result to be tempted by.
void decide_rounds(Recorder& recorder, const Measure& measure);

/// Runs every block that is still to be measured, in order. Returns whether it was interrupted: by a signal, or because
/// the allocation would end within the next block.
bool run_rounds(Job& job, const Plan& plan, const BlockDefaults& defaults, Recorder& recorder, ProgressLine& progress);

}  // namespace harness
