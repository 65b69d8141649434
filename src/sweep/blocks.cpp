#include "sweep/blocks.h"

namespace harness {

BlockRequest block_request(const Experiment& experiment, const PlannedCase& planned, BlockMode mode,
                           const BlockDefaults& defaults) {
  BlockRequest request;
  request.case_name = planned.name;
  request.backend = experiment.backend;
  request.model = experiment.model;
  request.settings = planned.settings;
  request.layout = planned.layout;
  request.mode = mode;
  request.warmup_steps = experiment.measure.warmup_steps;
  request.steps = experiment.measure.steps;
  request.seed = experiment.measure.seed;
  request.deadlines = experiment.measure.deadlines;
  request.memory_limit_bytes = experiment.measure.memory_limit_bytes;
  request.share_gpus = experiment.measure.share_gpus;
  if (mode == BlockMode::timed) request.wrap = defaults.wrap;
  request.tuning = defaults.tuning;
  // A log costs time; the observing worker turns it on for itself.
  if (experiment.backend == BackendKind::cuda) request.environment.emplace_back("NCCL_DEBUG", "WARN");
  return request;
}

bool stop_wanted(const Job& job, const BlockOutcome& outcome) {
  return outcome.stopped || job.stop_requests() > 0;
}

}  // namespace harness
