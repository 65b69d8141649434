#include "sweep/limits.h"

#include <fmt/format.h>

#include <algorithm>
#include <span>

#include "base/text.h"
#include "sweep/probe.h"
#include "sweep/rounds.h"
#include "workloads/operations.h"

namespace harness::sweep {
namespace {

// A sweep killed during the last measurement would not be complete, although all its rounds are.
bool may_go_on(const job::Job& job) {
  constexpr double margin_s = 10;
  const double end = job.allocation_end_unix_s();
  return job.stop_requests() == 0 && (end <= 0 || job.clock().unix_s() + margin_s < end);
}

}  // namespace

PeakSetup peak_setup_of(const plan::PlannedCase& planned) {
  const config::Settings& s = planned.settings;
  return {planned.layout.ranks(), s.threads, s.threads > 0 ? 0 : s.loader_threads(), s.precision};
}

void Peaks::add(const PeakSetup& setup, const std::vector<job::Samples>& samples) {
  double sum = 0;
  for (const job::Samples& s : samples) sum += std::get<job::ProbeSamples>(s.task).peak_flops;
  double& best = best_[setup];
  best = std::max(best, sum / static_cast<double>(samples.size()));
}

double Peaks::of(const plan::PlannedCase& planned) const {
  const auto measured = best_.find(peak_setup_of(planned));
  return measured == best_.end() ? 0 : measured->second;
}

bool measures_peaks(const config::Experiment& e) {
  return !config::traits_of(e.backend).ranks_are_gpus && !e.hardware && !e.without_hardware && !(e.peak_flops > 0);
}

void measure_peaks(job::Job& job, const plan::Plan& plan, Peaks& peaks) {
  if (!measures_peaks(plan.experiment)) return;
  std::map<PeakSetup, const plan::PlannedCase*> setups;
  for (const plan::PlannedCase& planned : plan.cases) {
    if (planned.is_possible()) setups.emplace(peak_setup_of(planned), &planned);
  }
  for (const auto& [setup, planned] : setups) {
    if (!may_go_on(job)) return;
    const job::BlockOutcome outcome = job.run_alone(block_request(plan.experiment, *planned, job::Probe{}, {}));
    if (outcome.ok) peaks.add(setup, outcome.samples);
  }
}

void fill_peaks(store::Result& result, const plan::Plan& plan) {
  const config::Experiment& e = plan.experiment;
  for (std::size_t i = 0; i < plan.cases.size(); ++i) {
    if (!plan.cases[i].is_possible()) continue;
    const plan::Peak peak = plan::configured_peak(e, plan.cases[i].settings.precision);
    result.cases[i].peak_flops_per_rank = peak.flops;
    if (peak.flops > 0) result.peak_source = peak.source;
  }
  if (measures_peaks(e)) {
    result.peak_source =
        "measured: the best of several runs of square matrix products, before and after the rounds, on as many ranks "
        "at once, with as many threads and in the same precision as each case";
  }
  // Without a configured peak and without a measurement, the peak is unknown and there is no MFU.
  if (result.peak_source.empty()) result.peak_source = "unknown";
  if (e.hardware) result.memory_bytes_per_s = e.hardware->memory_bytes_per_s;
}

void raise_peaks(Recorder& recorder, const plan::Plan& plan, const Peaks& peaks) {
  if (!measures_peaks(plan.experiment)) return;
  for (std::size_t i = 0; i < plan.cases.size(); ++i) {
    if (plan.cases[i].is_possible()) recorder.raise_peak(i, peaks.of(plan.cases[i]));
  }
}

plan::DeviceMemory memory_of(const config::Experiment& experiment, const plan::PlannedCase& planned,
                             const Machine& machine) {
  plan::DeviceMemory memory = plan::configured_memory(experiment);
  if (memory.bytes > 0 || config::traits_of(experiment.backend).ranks_are_gpus) return memory;
  std::vector<int> ranks_on(machine.topology().nodes());
  const auto used =
      std::span(machine.places).first(std::min<std::size_t>(planned.layout.ranks(), machine.places.size()));
  for (const job::RankPlace& place : used) ++ranks_on[place.node];
  for (const job::RankPlace& place : used) {
    const double share = job::share_of_memory(place.memory_bytes, ranks_on[place.node]);
    if (memory.bytes > 0 && share >= memory.bytes) continue;
    memory = {share,
              fmt::format("90 % of the memory of {}, shared by {}", place.host, plural(ranks_on[place.node], "rank"))};
  }
  return memory;
}

program::Links links_of(const config::Experiment& experiment, const plan::PlannedCase& planned) {
  program::Links links{experiment.fabric.rank_bytes_per_s, experiment.fabric.node_bytes_per_s, false, false};
  const auto& hardware = experiment.hardware;
  if (links.rank_bytes_per_s == 0 && hardware) links.rank_bytes_per_s = hardware->nvlink_bytes_per_s;
  const bool predicts = config::traits_of(experiment.backend).predicts();
  if (links.node_bytes_per_s == 0 && hardware && predicts) links.node_bytes_per_s = hardware->node_bytes_per_s;
  const config::BackendTraits& traits = config::traits_of(config::stands_for(experiment));
  links.switches_reduce_nodes = traits.uses_nccl && (!hardware || hardware->switches_may_reduce());
  const auto collnet = planned.settings.nccl.find("nccl_collnet");
  links.switches_reduce_network = collnet != planned.settings.nccl.end() && collnet->second == "true";
  return links;
}

void fill_link_limits(store::Result& result, const plan::Plan& plan, const Machine& machine) {
  const config::Experiment& e = plan.experiment;
  const program::Links links = links_of(e, plan.baseline());
  std::vector<std::string> sources;
  if (e.fabric.rank_bytes_per_s > 0 || e.fabric.node_bytes_per_s > 0)
    sources.emplace_back("the configuration (fabric)");
  if (e.hardware) sources.push_back("hardware file " + e.hardware->name);
  if (links.rank_bytes_per_s > 0 || links.node_bytes_per_s > 0) result.link_source = join(sources, ", ");
  for (store::ResultPoint& point : result.points) {
    const plan::PlannedCase& planned = plan.cases[point.case_index];
    const std::vector<int> node_of = plan::under_faults(e, planned.settings, machine.topology()).node_of;
    point.limit_bytes_per_s =
        workloads::max_bus_bandwidth(planned.settings, planned.layout, node_of, links_of(e, planned));
    if (point.limit_bytes_per_s > 0) point.limit_source = result.link_source;
  }
}

}  // namespace harness::sweep
