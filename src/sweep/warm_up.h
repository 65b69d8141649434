#pragma once

#include "job/job.h"

namespace harness::sweep {

struct WarmUp {
  job::BlockOutcome last;  // of the last untimed block; where this failed, the set starts anew
  bool settled = true;
};

/// Rank 0: the blocks, not timed, with which the processes of a set begin. One: the first block of a process pays for
/// what all others find ready. Where ranks are GPUs, more, of about a second each, until every GPU's mean clock is
/// within 1 % of the block before, and its mean power within 3 %, or for ten seconds in all; none where they do not
/// tell. `request`: of the baseline; its task is replaced.
WarmUp warm_up(job::Job& job, const job::WorkerSet& set, job::BlockRequest request);

}  // namespace harness::sweep
