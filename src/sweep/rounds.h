#pragma once

#include <optional>

#include "config/experiment.h"
#include "job/job.h"
#include "plan/plan.h"
#include "sweep/blocks.h"
#include "sweep/progress.h"
#include "sweep/recorder.h"

namespace harness::sweep {

/// Runs every block that is still to be measured, in order, and shows the progress. After a
/// declared look, settled cases are left out. No round starts that would not end by `end_s` of the job's clock. Returns
/// whether it was interrupted: by a signal, or because the allocation would end within the next block.
bool run_rounds(job::Job& job, const plan::Plan& plan, const BlockDefaults& defaults, Recorder& recorder,
                ProgressLine& progress, std::optional<double> end_s);

}  // namespace harness::sweep
