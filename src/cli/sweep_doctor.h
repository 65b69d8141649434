#pragma once

#include <string>

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

/// What doctor finds on the nodes of this plan's sweep, in at most two seconds; empty for a prediction. Nothing of it
/// stops a sweep, but with require_healthy: then a node has as long as in `harness doctor`, and Error with exit code 2
/// says the failures, and which nodes did not tell all.
store::DoctorRecord examine_nodes(job::Job& job, const plan::Plan& plan, const DoctorInSweep& how,
                                  sweep::ProgressLine& progress);

}  // namespace harness::cli
