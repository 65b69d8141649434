#include "sweep/blocks.h"

namespace harness::sweep {

job::BlockRequest block_request(const config::Experiment& experiment, const plan::PlannedCase& planned,
                                const job::Task& task, const BlockDefaults& defaults) {
  job::BlockRequest request;
  request.case_name = planned.name;
  request.backend = experiment.backend;
  request.model = experiment.model;
  request.settings = planned.settings;
  request.layout = planned.layout;
  request.task = task;
  request.warmup_steps = experiment.measure.warmup_steps;
  request.seed = experiment.measure.seed;
  request.deadlines = experiment.measure.deadlines;
  if (experiment.measure.usual_start)
    request.deadlines.start_s = config::usual_start_s(experiment.backend, planned.layout.ranks());
  request.memory_limit_bytes = experiment.measure.memory_limit_bytes;
  request.share_gpus = experiment.measure.share_gpus;
  if (std::holds_alternative<job::TimeSteps>(task)) request.wrap = defaults.wrap;
  request.tuning = defaults.tuning;
  // A log costs time; the observing worker turns it on for itself.
  if (config::traits_of(experiment.backend).uses_nccl) request.environment.emplace_back("NCCL_DEBUG", "WARN");
  return request;
}

bool stop_wanted(const job::Job& job, const job::BlockOutcome& outcome) {
  return outcome.stopped || job.stop_requests() > 0;
}

}  // namespace harness::sweep
