#include "sweep/blocks.h"

#include <algorithm>
#include <cmath>
#include <utility>
#include <vector>

#include "config/backend.h"

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

namespace {

std::vector<machine::GpuStatistics> gpus_of(const job::BlockOutcome& outcome) {
  std::vector<machine::GpuStatistics> gpus;
  for (std::size_t rank = 0; rank < outcome.samples.size(); ++rank)
    gpus.push_back(outcome.of<job::TimedSamples>(rank).gpu);
  return gpus;
}

bool tells(const machine::GpuStatistics& gpu) {
  return !std::isnan(gpu.mean_sm_clock_hz) || !std::isnan(gpu.mean_power_w);
}

// Two unknown values are near each other.
bool is_near(double now, double before, double share) {
  if (std::isnan(now) || std::isnan(before)) return std::isnan(now) == std::isnan(before);
  return std::abs(now - before) <= share * before;
}

bool is_settled(const machine::GpuStatistics& now, const machine::GpuStatistics& before) {
  return is_near(now.mean_sm_clock_hz, before.mean_sm_clock_hz, 0.01) &&
         is_near(now.mean_power_w, before.mean_power_w, 0.03);
}

// As many steps as take about a second, so that the sampler reads the devices several times.
int steps_of_a_second(const job::BlockOutcome& outcome) {
  constexpr double most = 10'000;
  double step_s = 0;
  for (std::size_t rank = 0; rank < outcome.samples.size(); ++rank)
    step_s = std::max(step_s, outcome.of<job::TimedSamples>(rank).step_s.back());
  return static_cast<int>(std::clamp(1 / step_s, 1.0, most));
}

}  // namespace

WarmUp warm_up(job::Job& job, const job::WorkerSet& set, job::BlockRequest request) {
  constexpr double most_s = 10;
  const double end_s = job.clock().seconds() + most_s;
  request.task = job::TimeSteps{1};
  WarmUp done{job.run({{set, request, false}}).at(0), true};
  if (!config::traits_of(request.backend).ranks_are_gpus) return done;
  for (std::vector<machine::GpuStatistics> before; done.last.ok;) {
    request.task = job::TimeSteps{steps_of_a_second(done.last)};
    done.last = job.run({{set, request, false}}).at(0);
    std::vector<machine::GpuStatistics> now = gpus_of(done.last);
    if (std::ranges::none_of(now, tells) || std::ranges::equal(now, before, is_settled)) break;
    if (job.clock().seconds() > end_s) return {std::move(done.last), false};
    before = std::move(now);
  }
  return done;
}

}  // namespace harness::sweep
