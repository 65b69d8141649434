#pragma once

#include <memory>
#include <string>
#include <vector>

#include "cli/verbs.h"
#include "config/experiment.h"
#include "job/job.h"
#include "plan/plan.h"
#include "store/result.h"
#include "sweep/progress.h"
#include "sweep/sweep.h"

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

/// For `--resume FILE`, which takes `env` from the file: "" if none of it makes the workers run code that lies
/// elsewhere, else a line that says which variables do. Throws Error if there are any, the file is another user's, and
/// the person did not say that the file is to be trusted.
std::string foreign_code_in(const plan::Plan& plan, const std::string& path, bool trusted);

/// Where the result goes: `given` or the experiment's template, with {name} and {date} filled in.
std::string output_path(const config::Experiment& experiment, const std::string& given);

/// The backend of --backend must be in this build: a configuration for another backend has a dozen keys that this one
/// does not honour, which would hide it. Throws Error.
void require_named_backend(const std::vector<std::string>& overrides);

/// The plan on all ranks of the job. Throws Error if the backend or a GPU is missing, or if nothing can be planned.
plan::Plan plan_sweep(const job::Job& job, const config::Experiment& experiment, const std::vector<std::string>& only,
                      plan::Processes processes);
/// As the command of --wrap needs it, which sees one block in a process, and as the file that is `resumed` was begun.
/// Either may be "".
plan::Processes processes_for(const std::string& wrap, const std::string& resumed);

/// The job in virtual time that predicts the experiment, on as many ranks as given, else as the launcher started;
/// nullptr where the experiment is measured. Throws Error if nothing says how many ranks, or if a prediction is asked
/// for what only measuring does.
std::unique_ptr<job::Job> simulated_job(const job::Job& real, const config::Experiment& experiment,
                                        const SweepOptions& options);

/// Where the result goes, and what becomes of a file that is there.
struct OutputRequest {
  std::string path;
  bool resume = false, force = false;
  int more_rounds = 0;  // with resume: the total that a complete file is extended to; 0: none are added
};
struct Measured {
  store::RunState state = store::RunState::complete;
  store::Result result;  // as the file has it
};
/// Locks the file, looks at the nodes, says what will be measured, measures it and reads it back. Throws Error if the
/// file cannot be written or resumed there, or is in use by another sweep.
Measured measure_sweep(job::Job& job, const plan::Plan& plan, const OutputRequest& output, sweep::SweepRequest request,
                       const DoctorInSweep& look, sweep::ProgressLine& progress);

/// 5: as much as a script must know of a sweep that was stopped, which is whether to come back.
inline constexpr int exit_partial = 5;

}  // namespace harness::cli
