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
  std::string wrap;                 // a command that starts the timed workers; "": none
  bool resume = false;              // continue the interrupted file
  bool more_rounds = false;         // with `resume`: first add rounds to the complete file, up to the plan's
  store::DoctorRecord doctor = {};  // of the nodes, before the sweep
};

/// The destination of the result file.
struct SweepOutput {
  const store::Lock& lock;
  bool overwrite = false;
  bool has_result = false;  // set by run_sweep() once the file is one that --resume continues
};

/// Runs one sweep on rank 0, from a prepared plan to a finished result file: probe, tune, observe, record timelines,
/// run rounds. Returns the state of the file. Throws Error if nothing can be measured, or if another sweep takes over
/// the file.
store::RunState run_sweep(job::Job& job, plan::Plan plan, SweepOutput& output, const SweepRequest& request,
                          ProgressLine& progress);

/// The command that continues a file, with this program's name as the user typed it.
std::string resume_command(int ranks, const std::string& path);

/// Throws Error, with the correct command, if the file was made on another number of ranks.
void require_same_ranks(const store::Result& earlier, int ranks, const std::string& path);

/// Throws Error if the file is complete.
void require_resumable(const store::Result& earlier, const std::string& path);

/// Throws Error if the file is complete, was made on other ranks, or if a case of it cannot run as before. Called once
/// the machine is known.
void require_same_programs(const store::Result& earlier, const store::Result& planned, const std::string& path);

/// Adds rounds to a complete sweep, so that it can be resumed up to `rounds`. Conclusions stand: settled cases are not
/// measured again. The other cases get one more look, which spends its own share of the error (analysis/estimator.h);
/// the file records this. `plan`: of the file's configuration, with `rounds` rounds. Throws Error, and changes nothing,
/// if that would violate what the file declared, if a case cannot run as before or if there is nothing left to settle.
void extend_file(const std::string& path, const plan::Plan& plan, int rounds);

}  // namespace harness::sweep
