#pragma once

#include <string>
#include <vector>

#include "launch/job.h"
#include "plan/plan.h"
#include "store/result.h"
#include "sweep/progress.h"

namespace harness::sweep {

struct SweepRequest {
  std::string path;     // of the result file
  std::string command;  // as it was typed, for the result file
  std::string wrap;     // a command that timed workers are started under; "": none
  bool overwrite = false;
  bool resume = false;                         // `path` is an interrupted file to continue
  std::vector<store::ResultStage> climb = {};  // of a climb, the stages before this one
};

/// One sweep on rank 0, from a prepared plan to a finished result file: probe, tune, observe, record timelines, run
/// rounds. Returns the state of the file. Throws Error if nothing can be measured.
store::RunState run_sweep(launch::Job& job, plan::Plan plan, const SweepRequest& request, ProgressLine& progress);

}  // namespace harness::sweep
