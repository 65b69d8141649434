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

/// The command that continues a file, as the person called this program.
std::string resume_command(int ranks, const std::string& path);

/// Throws Error, with the command that works, if a file was made on another number of ranks than this job has.
void require_same_ranks(const store::Result& earlier, int ranks, const std::string& path);

/// Throws Error if the file is complete.
void require_resumable(const store::Result& earlier, const std::string& path);

/// Once the machine is known: throws Error also if it was made on other ranks or the programs of the cases differ.
void require_same_programs(const store::Result& earlier, const store::Result& planned, const std::string& path);

/// Adds rounds to a sweep that is complete, so that it can be resumed up to `rounds`. What the sweep has concluded so
/// far stands: cases whose verdict is settled are measured no more. For the others there is one look more, which spends
/// error of its own (analysis/estimator.h); the file says so. `plan`: of the file's configuration, with `rounds`
/// rounds. Throws Error, and changes nothing, if that would break what the file declared or if there is nothing left to
/// settle.
void extend_file(const std::string& path, const plan::Plan& plan, int rounds);

}  // namespace harness::sweep
