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

/// Settings that all blocks of a sweep have in common, in every phase.
struct BlockDefaults {
  NameValues tuning;  // what tuning workers found
  std::string wrap;   // the command that timed workers are started under
};

/// One block of a case, ready to run.
job::BlockRequest block_request(const config::Experiment& experiment, const plan::PlannedCase& planned,
                                const job::Task& task, const BlockDefaults& defaults);

/// Runs an untimed block, again after a failure: a second try tells a passing fault from a lasting one, which fails in
/// the same way. A block that fails in a new way each time is run three times. `failed`: called for every failure
/// but the last.
job::BlockOutcome run_untimed(job::Job& job, const job::BlockRequest& request,
                              const std::function<void(const job::BlockOutcome&)>& failed = {});

/// Whether the allocation would end within a block that takes about so long.
bool out_of_time(const job::Job& job, double block_s);
/// Whether a user asked to stop, during this block or before: no further block should start.
bool stop_wanted(const job::Job& job, const job::BlockOutcome& outcome);

/// Rank 0: the blocks, not timed, with which the processes of a set begin. One step: the first block of a process pays
/// for what all others find ready. Where ranks are GPUs, then as many steps as take 3 s, in which clocks and power
/// settle. Returns the outcome of the last block; where it failed, the set starts anew. `request`: of a case of the
/// set; its task is replaced.
job::BlockOutcome warm_up(job::Job& job, const job::WorkerSet& set, job::BlockRequest request);

/// Runs every block that is still to be measured, in order, and shows the progress. After a
/// declared look, settled cases are left out. No round starts that would not end by `end_s` of the job's clock. Returns
/// whether it was interrupted: by a signal, or because the allocation would end within the next block.
bool run_rounds(job::Job& job, const plan::Plan& plan, const BlockDefaults& defaults, Recorder& recorder,
                ProgressLine& progress, std::optional<double> end_s);

// Blocks that run once, before the rounds and untimed.

/// The number of profiled steps of a case, of which the median is kept. A prediction has one.
inline constexpr int profiled_steps = 5;

/// Runs one untimed worker per case, for its timeline and for an estimate of how long a timed block takes. A case that
/// fails twice in the same way is dropped. Throws Error if that is the baseline. Returns whether it was interrupted.
bool record_timelines(job::Job& job, const plan::Plan& plan, const BlockDefaults& defaults, const Machine& machine,
                      Recorder& recorder, ProgressLine& progress);

/// Adds the profiled steps of a case's ranks to the result: the intervals of the ranks that kept them, with how long
/// each communication waited; the sums of the operations; the splits and totals of every rank. `set` as the workers ran
/// it, lowered; samples[rank]: TimelineSamples; `limits` of the same set.
void add_timeline(store::Result& result, int case_index, const program::ProgramSet& set,
                  const std::vector<job::Samples>& samples, program::LeastTimes& limits);

/// NCCL's choices in each case, according to its log, and the requests that it did not follow.
struct NcclObservation {
  std::vector<store::ResultNcclCall> calls;
  std::vector<store::ResultNcclFact> facts;
  bool interrupted = false;
};
/// One untimed worker per case that communicates, with NCCL's log. Nothing on other backends.
NcclObservation observe(job::Job& job, const plan::Plan& plan, const BlockDefaults& defaults, ProgressLine& progress);

/// The choices that untimed workers made by timing the alternatives of the backend (on GPUs: algorithms of matrix
/// products). All blocks use them.
struct TuningOutcome {
  NameValues tuning;
  std::vector<std::string> warnings;
  bool interrupted = false;
};
TuningOutcome tune(job::Job& job, const plan::Plan& plan, ProgressLine& progress);

}  // namespace harness::sweep
