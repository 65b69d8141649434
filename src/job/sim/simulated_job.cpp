#include "job/sim/simulated_job.h"

#include <utility>
#include <variant>

#include "base/text.h"
#include "job/job.h"
#include "sim/trust.h"
#include "workloads/workload.h"

namespace harness::simjob {
namespace {

std::vector<job::RankPlace> places_on(const machine::Topology& topology, const config::Hardware& hardware) {
  std::vector<int> on_node(topology.nodes());
  std::vector<job::RankPlace> places;
  for (const int node : topology.node_of) {
    job::RankPlace place;
    place.rank = static_cast<int>(places.size());
    place.node = node;
    place.local_rank = on_node[node]++;
    place.host = fmt::format("simulated-{}", node);
    place.device = hardware.name;
    places.push_back(std::move(place));
  }
  for (job::RankPlace& place : places) place.local_ranks = on_node[place.node];
  return places;
}

std::string key_of(const job::BlockRequest& request) {
  std::string key;
  for (const config::Variable& variable : config::registry()) key += variable.print(request.settings) + "\n";
  return key + program::text_of(request.layout);
}

sim::Trust trust_in(const sim::Prediction& prediction, const job::BlockRequest& request,
                    const config::Experiment& experiment) {
  return sim::trust_in(prediction, request.model, request.settings, request.layout.ranks(), *experiment.hardware,
                       *experiment.calibration);
}

}  // namespace

std::vector<job::Samples> profiled_samples(const sim::Simulation& simulation, config::Timelines kept) {
  const program::ProgramSet& set = simulation.set();
  const int ranks = set.layout.ranks();
  std::vector<job::Samples> samples(ranks);
  for (int c = 0; std::cmp_less(c, simulation.classes().list().size()); ++c) {
    std::vector<program::Interval> intervals = simulation.intervals(c);
    for (program::Interval& interval : intervals) {  // the step starts with filling its inputs
      interval.start_s += simulation.loading_s();
      interval.end_s += simulation.loading_s();
    }
    job::TimelineSamples summed{job::sum_up(simulation.classes().program(c), intervals, ranks), {}, {}};
    // The software overhead of a step belongs to no operation, so it counts as idle.
    summed.split.idle_s += simulation.step_s() - summed.split.step_s;
    summed.step_s = summed.split.step_s = simulation.step_s();
    summed.loading_s = simulation.loading_s();
    for (int rank = 0; rank < ranks; ++rank) {
      if (simulation.classes().class_of(rank) != c) continue;
      job::TimelineSamples of_rank = summed;
      const int role = simulation.classes().list()[c].role;
      if (kept == config::Timelines::all || set.first_rank(role) == rank) of_rank.timeline = intervals;
      samples[rank].task = std::move(of_rank);
    }
  }
  return samples;
}

SimulatedJob::SimulatedJob(const config::Experiment& experiment, const machine::Topology& topology)
    : experiment_(experiment),
      network_(sim::network_of(experiment, topology.node_of)),
      places_(places_on(topology, *experiment.hardware)) {
  job::count_stop_signals();
}

job::BlockOutcome SimulatedJob::run(const job::BlockOnSet& block) {
  job::BlockOutcome outcome;
  outcome.start_unix_s = clock_.unix_s();
  const double start_s = clock_.seconds();
  outcome.samples = samples_of(block.request);
  outcome.ok = true;
  outcome.total_s = clock_.seconds() - start_s;
  return outcome;
}

std::vector<job::Samples> SimulatedJob::samples_of(const job::BlockRequest& request) {
  if (std::holds_alternative<job::Probe>(request.task)) {
    // The sources of the numbers, for readers of a report, and the expected error of the baseline, the probed case.
    const config::Hardware& hardware = *experiment_.hardware;
    const config::Calibration& calibration = *experiment_.calibration;
    const sim::Trust trust = trust_in(simulate(request)->prediction(), request, experiment_);
    job::ProbeSamples probed;
    probed.identity = {{"hardware", fmt::format("{} ({})", hardware.name, hardware.source)},
                       {"calibration", fmt::format("{} ({})", calibration.name, calibration.source)},
                       {"expected_error", trust.error_words}};
    return std::vector<job::Samples>(request.layout.ranks(), job::Samples{.task = probed, .warnings = {}});
  }
  if (const auto* timeline = std::get_if<job::RecordTimeline>(&request.task)) {
    const std::unique_ptr<sim::Simulation> simulation = simulate(request);
    step_s_[key_of(request)] = simulation->step_s();
    clock_.pass((request.warmup_steps + 1) * simulation->step_s());
    std::vector<job::Samples> samples = profiled_samples(*simulation, timeline->ranks);
    samples.front().warnings = trust_in(simulation->prediction(), request, experiment_).warnings;
    return samples;
  }
  const auto* timed = std::get_if<job::TimeSteps>(&request.task);
  if (timed == nullptr) fail("a simulated job has nothing to tune, to observe or to copy");
  auto known = step_s_.find(key_of(request));
  if (known == step_s_.end()) known = step_s_.emplace(key_of(request), simulate(request)->step_s()).first;
  const std::size_t steps = request.warmup_steps + timed->steps;
  job::TimedSamples samples;
  samples.step_s.assign(steps, known->second);
  samples.timed_total_s = timed->steps * known->second;
  clock_.pass(static_cast<double>(steps) * known->second);
  return std::vector<job::Samples>(request.layout.ranks(), job::Samples{.task = samples, .warnings = {}});
}

std::unique_ptr<sim::Simulation> SimulatedJob::simulate(const job::BlockRequest& request) const {
  const program::ProgramSet programs = workloads::build_programs(request.model, request.settings, request.layout);
  return std::make_unique<sim::Simulation>(programs, request.settings, experiment_, network_);
}

}  // namespace harness::simjob
