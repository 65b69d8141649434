#pragma once

#include <string>
#include <vector>

#include "base/text.h"
#include "job/job.h"
#include "plan/plan.h"
#include "program/links.h"
#include "program/program.h"
#include "store/result.h"
#include "sweep/probe.h"
#include "sweep/progress.h"
#include "sweep/recorder.h"
#include "sweep/rounds.h"

namespace harness::sweep {

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
