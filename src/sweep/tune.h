#pragma once

#include <string>
#include <vector>

#include "base/text.h"
#include "job/job.h"
#include "plan/plan.h"
#include "sweep/blocks.h"
#include "sweep/progress.h"

namespace harness::sweep {

/// The choices that untimed workers made by timing the alternatives of the backend (on GPUs: algorithms of matrix
/// products). All blocks use them.
struct TuningOutcome {
  NameValues tuning;
  std::vector<std::string> warnings;
  bool interrupted = false;
};
TuningOutcome tune(job::Job& job, const plan::Plan& plan, ProgressLine& progress);

}  // namespace harness::sweep
