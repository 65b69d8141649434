#pragma once

#include "config/experiment.h"
#include "launch/job.h"
#include "plan/plan.h"
#include "sweep/blocks.h"
#include "sweep/progress.h"
#include "sweep/recorder.h"

namespace harness::sweep {

/// Reduces the rounds to the time budget. Called before the first block, so that no result can influence the decision.
void decide_rounds(Recorder& recorder, const config::Measure& measure);

/// Runs every block that is still to be measured, in order. Returns whether it was interrupted: by a signal, or because
/// the allocation would end within the next block.
bool run_rounds(launch::Job& job, const plan::Plan& plan, const BlockDefaults& defaults, Recorder& recorder,
                ProgressLine& progress);

}  // namespace harness::sweep
