#pragma once

#include <string>
#include <vector>

#include "cli/verbs.h"
#include "config/experiment.h"
#include "job/job.h"
#include "plan/plan.h"
#include "store/result.h"
#include "sweep/progress.h"

namespace harness::cli {

/// How a sweep looks at its nodes before it begins.
struct DoctorInSweep {
  std::string sysroot = "/";     // replaces "/", as in `harness doctor`
  bool require_healthy = false;  // a failure ends the sweep before it begins
};

/// The findings of doctor on the nodes of this plan's sweep, in at most two seconds; empty for a prediction. Nothing of
/// it stops a sweep, but with require_healthy: then a node has as long as in `harness doctor`, and Error with exit code
/// 2 says the failures, and which nodes did not tell all.
store::DoctorRecord examine_nodes(job::Job& job, const plan::Plan& plan, const DoctorInSweep& how,
                                  sweep::ProgressLine& progress);

/// For `--resume FILE`, which takes `env` from the file: throws Error if the file is another user's and some of it
/// makes the workers run code that lies elsewhere.
void require_own_code(const plan::Plan& plan, const std::string& path);

/// The plan on all ranks of the job. Throws Error if the backend or a GPU is missing, or if nothing can be planned.
plan::Plan plan_sweep(const job::Job& job, const config::Experiment& experiment, const std::vector<std::string>& only,
                      plan::Processes processes);

}  // namespace harness::cli
