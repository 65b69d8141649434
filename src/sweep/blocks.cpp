#include "sweep/blocks.h"

#include <utility>

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

job::BlockOutcome run_untimed(job::Job& job, const job::BlockRequest& request,
                              const std::function<void(const job::BlockOutcome&)>& failed) {
  constexpr int most_tries = 3;
  job::BlockOutcome outcome = job.run_alone(request);
  for (int tries = 1; tries < most_tries && !outcome.ok && !stop_wanted(job, outcome); ++tries) {
    if (failed) failed(outcome);
    const std::string before = std::exchange(outcome, job.run_alone(request)).signature;
    if (outcome.signature == before) break;
  }
  return outcome;
}

bool stop_wanted(const job::Job& job, const job::BlockOutcome& outcome) {
  return outcome.stopped || job.stop_requests() > 0;
}

}  // namespace harness::sweep
