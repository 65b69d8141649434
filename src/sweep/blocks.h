#pragma once

#include <functional>
#include <string>

#include "base/text.h"
#include "job/job.h"
#include "plan/plan.h"

namespace harness::sweep {

/// What all blocks of a sweep have in common, in every phase.
struct BlockDefaults {
  NameValues tuning;  // what tuning workers found
  std::string wrap;   // the command that timed workers are started under
};

/// One block of a case, ready to run.
job::BlockRequest block_request(const config::Experiment& experiment, const plan::PlannedCase& planned,
                                const job::Task& task, const BlockDefaults& defaults);

/// Runs an untimed block, again after a failure: a second try tells a passing fault from a lasting one, which fails in
/// the same way. What fails in ever new ways has three tries. `failed`: hears of every failure that was not the last.
job::BlockOutcome run_untimed(job::Job& job, const job::BlockRequest& request,
                              const std::function<void(const job::BlockOutcome&)>& failed = {});

/// Whether a user asked to stop, during this block or before: no further block should start.
bool stop_wanted(const job::Job& job, const job::BlockOutcome& outcome);

}  // namespace harness::sweep
