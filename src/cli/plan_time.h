#pragma once

#include <map>
#include <string>
#include <vector>

#include "plan/plan.h"

namespace harness::cli {

/// Where the times of blocks come from, as typed; all "": from nowhere.
struct TimeOptions {
  std::string like;          // a result file
  std::string assume_mfu;    // "40%", of every case
  std::string assume_setup;  // "45 s", of every block
};

struct PlannedTime {
  int rounds = 0;                  // that the time budget allows; all, where there is none or no times are known
  std::vector<std::string> lines;  // how long these take, in GPU hours and money too where those are known
};
/// Throws Error if the result file tells nothing of this plan (another backend, workload, model or number of ranks), if
/// an assumption cannot be used, or if the time budget allows too few rounds for any verdict.
PlannedTime planned_time(const plan::Plan& plan, const TimeOptions& options);

/// Seconds of a step by the name of its case.
using StepTimes = std::map<std::string, double>;
/// How long a block and the sweep take if steps take what was predicted; nothing where that says nothing.
std::vector<std::string> expected_time(const plan::Plan& plan, const StepTimes& predicted);

}  // namespace harness::cli
