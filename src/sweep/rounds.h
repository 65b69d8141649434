#pragma once

#include <chrono>
#include <optional>

#include "config/experiment.h"
#include "launch/job.h"
#include "plan/plan.h"
#include "sweep/blocks.h"
#include "sweep/progress.h"
#include "sweep/recorder.h"

namespace harness::sweep {

// Called before the first block, so that no result can influence the decision.

/// With `steps: auto`: as many timed steps as take three quarters of the time that a block of the baseline spends on
/// its set-up and warm-up. Shorter blocks waste the machine on set-up, longer ones leave too few of them to follow its
/// drift (docs/method.md, "How long a block is").
void decide_steps(Recorder& recorder, config::Measure& measure);
/// Reduces the rounds to what the time budget leaves after `spent_s` of preparation. A sweep that ends when all is
/// settled keeps its rounds: the clock ends it.
void decide_rounds(Recorder& recorder, const config::Measure& measure, double spent_s);

/// Runs every block that is still to be measured, in order, and shows after each round where the cases stand. After a
/// declared look, settled cases are left out. No round starts that would not end by `end`. Returns whether it was
/// interrupted: by a signal, or because the allocation would end within the next block.
bool run_rounds(launch::Job& job, const plan::Plan& plan, const BlockDefaults& defaults, Recorder& recorder,
                ProgressLine& progress, std::optional<std::chrono::steady_clock::time_point> end);

}  // namespace harness::sweep
