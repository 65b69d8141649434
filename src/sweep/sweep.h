#pragma once

#include <string>

#include "job/job.h"
#include "plan/plan.h"
#include "store/lock.h"
#include "store/result.h"
#include "sweep/progress.h"

namespace harness::sweep {

struct SweepRequest {
  std::string command;              // as it was typed, for the result file
  std::string wrap;                 // a command that timed workers are started under; "": none
  bool resume = false;              // the place has an interrupted file to continue
  store::DoctorRecord doctor = {};  // of the nodes, before anything else
};

/// The place of the result file.
struct SweepOutput {
  const store::Lock& lock;
  bool overwrite = false;
  bool has_result = false;  // set by run_sweep() once the file there is this sweep's
};

/// One sweep on rank 0, from a prepared plan to a finished result file in its place: probe, tune, observe, record
/// timelines, run rounds. Returns the state of the file. Throws Error if nothing can be measured, or if another sweep
/// takes the file over.
store::RunState run_sweep(job::Job& job, plan::Plan plan, SweepOutput& output, const SweepRequest& request,
                          ProgressLine& progress);

}  // namespace harness::sweep
