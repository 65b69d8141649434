#pragma once

#include <string>

#include "plan/plan.h"

namespace harness::cli {

/// Where the times of blocks come from, as typed; all "": from nowhere.
struct TimeOptions {
  std::string like;          // a result file
  std::string assume_mfu;    // "40%", of every case
  std::string assume_setup;  // "45 s", of every block
};

/// How long the plan takes, in GPU hours and money too where those are known, in words. Throws Error if the result file
/// tells nothing of this plan (another backend, workload, model or number of ranks), or if an assumption cannot be
/// used.
std::string time_text(const plan::Plan& plan, const TimeOptions& options);

}  // namespace harness::cli
