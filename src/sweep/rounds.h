#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "base/text.h"
#include "config/experiment.h"
#include "job/job.h"
#include "plan/plan.h"
#include "program/links.h"
#include "program/program.h"
#include "store/result.h"
#include "sweep/probe.h"
#include "sweep/progress.h"
#include "sweep/recorder.h"

namespace harness::sweep {

/// Settings that all blocks of a sweep share, in every phase.
struct BlockDefaults {
  NameValues tuning;  // the choices of the tuning workers
  std::string wrap;   // the command that starts timed workers
};

/// The request for one block of a case.
job::BlockRequest block_request(const config::Experiment& experiment, const plan::PlannedCase& planned,
                                const job::Task& task, const BlockDefaults& defaults);

/// Runs an untimed block, and again after a failure: a second try distinguishes a transient fault from a permanent one,
/// which fails in the same way. A block that fails in a new way each time runs three times. `failed`: called for every
/// failure but the last.
job::BlockOutcome run_untimed(job::Job& job, const job::BlockRequest& request,
                              const std::function<void(const job::BlockOutcome&)>& failed = {});

/// Whether the allocation would end within a block of this duration.
bool out_of_time(const job::Job& job, double block_s);
/// Whether the user asked to stop, during this block or before, so that no further block should start.
bool stop_wanted(const job::Job& job, const job::BlockOutcome& outcome);

/// Rank 0: runs the untimed blocks with which the processes of a set begin. The first has one step and pays the
/// one-time costs of a process. If ranks are GPUs, a second one runs for 3 s, in which clocks and power settle, or for
/// the most steps of a block. Returns the outcome of the last block; if that failed, the set starts anew. `request`: of
/// a case of the set; its task is replaced.
job::BlockOutcome warm_up(job::Job& job, const job::WorkerSet& set, job::BlockRequest request);

/// Runs all pending blocks in order and shows the progress. After a declared look, leaves out settled cases. Starts no
/// round that would not end by `end_s` of the job's clock. Returns whether it was interrupted: by a signal, or because
/// the allocation would end within the next block.
bool run_rounds(job::Job& job, const plan::Plan& plan, const BlockDefaults& defaults, Recorder& recorder,
                ProgressLine& progress, std::optional<double> end_s);

// Untimed blocks that run once, before the rounds.

/// The number of profiled steps of a case; the median one is kept. One is enough for a prediction, and for an
/// operation, which a step repeats.
int profiled_steps(const config::Experiment& experiment);

/// Runs one untimed worker per case, to record its timeline and to estimate the duration of a timed block. A case that
/// fails twice in the same way is dropped; throws Error if that is the baseline. Returns whether it was interrupted.
bool record_timelines(job::Job& job, const plan::Plan& plan, const BlockDefaults& defaults, const Machine& machine,
                      Recorder& recorder, ProgressLine& progress);

/// Adds the profiled steps of a case's ranks to the result: the intervals of ranks that kept them, with the waiting
/// time of each communication; the sums of the operations; the splits and totals of every rank. `set`: lowered, as the
/// workers ran it; samples[rank]: TimelineSamples; `limits`: of the same set; `context`: how many ranks share a
/// sequence, so that the queries of each meet the keys of all.
void add_timeline(store::Result& result, int case_index, const program::ProgramSet& set,
                  const std::vector<job::Samples>& samples, program::LeastTimes& limits, int context = 1);

/// Runs one untimed worker with NCCL's log for each case that communicates, and adds NCCL's choices to the result, and
/// the requests that it did not honour. Does nothing on other backends. Returns whether it was interrupted.
bool observe(job::Job& job, const plan::Plan& plan, const BlockDefaults& defaults, Recorder& recorder,
             ProgressLine& progress);

/// Makes choices by timing the alternatives of the backend (on GPUs: algorithms of matrix products) in untimed workers,
/// and records them. All later blocks use them: `defaults` gets them. Returns whether it was interrupted.
bool tune(job::Job& job, const plan::Plan& plan, BlockDefaults& defaults, Recorder& recorder, ProgressLine& progress);

}  // namespace harness::sweep
