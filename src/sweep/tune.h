#pragma once

#include <string>
#include <vector>

#include "base/name_values.h"
#include "launch/job.h"
#include "plan/plan.h"
#include "sweep/blocks.h"
#include "sweep/probe.h"
#include "sweep/progress.h"

namespace harness {

/// What untimed workers found by timing what the backend leaves open (GPUs: algorithms of matrix products), for all
/// blocks alike.
struct TuningOutcome {
  NameValues tuning;
  std::vector<std::string> warnings;
  bool interrupted = false;
};
TuningOutcome tune(Job& job, const Plan& plan, const Machine& machine, ProgressLine& progress);

}  // namespace harness
