#pragma once

#include <string>
#include <vector>

#include "cli/verbs.h"
#include "config/experiment.h"
#include "plan/plan.h"
#include "sweep/progress.h"
#include "sweep/sweep.h"

namespace harness::cli {

/// Where the result goes: `given` or the experiment's template, with {name} and {date} filled in.
std::string output_path(const config::Experiment& experiment, const std::string& given);

/// The plan on all ranks of the job. Throws Error if the backend or a GPU is missing, or if nothing can be planned.
plan::Plan plan_sweep(const launch::Job& job, const config::Experiment& experiment,
                      const std::vector<std::string>& only);

/// Throws Error, before anything is measured, if the result file cannot be written or resumed there.
void check_output(const std::string& path, bool resume, bool force);

/// Measures, and says first what. Returns the state of the file.
store::RunState measure_sweep(launch::Job& job, plan::Plan plan, const sweep::SweepRequest& request,
                              sweep::ProgressLine& progress);

/// 5: as much as a script must know of a sweep that was stopped, which is whether to come back.
inline constexpr int exit_partial = 5;

/// What `sweep --climb` does: a stage is a sweep with a file of its own.
int climb(launch::Job& job, const SweepOptions& options, std::ostream& out, std::ostream& err);

}  // namespace harness::cli
