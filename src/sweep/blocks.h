#pragma once

#include <string>

#include "base/name_values.h"
#include "launch/job.h"
#include "plan/plan.h"

namespace harness {

/// What all blocks of a sweep have in common, whichever phase asks for them.
struct BlockDefaults {
  NameValues tuning;  // what tuning workers found
  std::string wrap;   // the command that timed workers are started under
};

/// One block of a case, ready to run.
BlockRequest block_request(const Experiment& experiment, const PlannedCase& planned, BlockMode mode,
                           const BlockDefaults& defaults);

/// A command that an operator gave while this block ran or before it: no further block should start.
bool stop_wanted(const Job& job, const BlockOutcome& outcome);

}  // namespace harness
