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

void keep_larger(std::map<int, double>& best, const std::map<int, double>& found) {
  for (const auto& [node, flops] : found) best[node] = std::max(best[node], flops);
}

double value_at(const std::map<int, double>& by_node, int node) {
  const auto it = by_node.find(node);
  return it == by_node.end() ? 0.0 : it->second;
}

// A sweep killed during the last measurement would not be complete, although all its rounds are.
bool may_go_on(const job::Job& job) {
  constexpr double margin_s = 10;
  const double end = job.allocation_end_unix_s();
  return job.stop_requests() == 0 && (end <= 0 || job.clock().unix_s() + margin_s < end);
}

}  // namespace

int Peaks::local_ranks(int node, int first_ranks) const {
  return static_cast<int>(
      std::ranges::count_if(places_, [&](const job::RankPlace& p) { return p.rank < first_ranks && p.node == node; }));
}

int Peaks::default_threads(const job::RankPlace& place, int ranks) const {
  return std::max(1, place.cores / std::max(1, local_ranks(place.node, ranks)));
}

PeakSetup Peaks::setup_of(const plan::PlannedCase& planned) const {
  PeakSetup setup{planned.layout.ranks(), planned.settings.threads, planned.settings.precision};
  if (planned.settings.loader_threads() > 0) {
    setup.threads = 0;  // the fewest of any node
    for (const job::RankPlace& place : places_) {
      if (place.rank >= setup.ranks) continue;
      const int threads = planned.settings.compute_threads(default_threads(place, setup.ranks));
      setup.threads = setup.threads == 0 ? threads : std::min(setup.threads, threads);
    }
  }
  const bool by_default = std::ranges::all_of(places_, [&](const job::RankPlace& place) {
    return place.rank >= setup.ranks || setup.threads == default_threads(place, setup.ranks);
  });
  if (by_default) setup.threads = 0;
  return setup;
}

void Peaks::add(const PeakSetup& setup, const std::vector<job::Samples>& samples) {
  // A node's ranks count together: on cores that they share, one is quick while another waits.
  ByNode found;
  for (std::size_t rank = 0; rank < samples.size(); ++rank) {
    found[places_[rank].node] += std::get<job::ProbeSamples>(samples[rank].task).peak_flops;
  }
  keep_larger(alike_[setup], found);
  keep_larger(of_any_[setup.precision], found);
}

double Peaks::share(const PeakSetup& setup, const job::RankPlace& place) const {
  const int local = std::max(1, local_ranks(place.node, setup.ranks));
  const int threads = setup.threads > 0 ? setup.threads : default_threads(place, setup.ranks);
  const auto alike = alike_.find(setup);
  const double measured = alike == alike_.end() ? 0.0 : value_at(alike->second, place.node);
  const auto any = of_any_.find(setup.precision);
  const double whole_node = any == of_any_.end() ? 0.0 : value_at(any->second, place.node);
  const double part = std::min(1.0, static_cast<double>(threads) * local / std::max(1, place.cores));
  return std::max(measured, part * whole_node) / local;
}

double Peaks::of(const plan::PlannedCase& planned) const {
  const PeakSetup setup = setup_of(planned);
  double total = 0;
  for (const job::RankPlace& place : places_) {
    if (place.rank < setup.ranks) total += share(setup, place);
  }
  return total / setup.ranks;
}

bool measures_peaks(const config::Experiment& e) {
  return !config::traits_of(e.backend).ranks_are_gpus && !e.hardware && !e.without_hardware && !(e.peak_flops > 0);
}

void measure_peaks(job::Job& job, const plan::Plan& plan, Peaks& peaks) {
  if (!measures_peaks(plan.experiment)) return;
  std::map<PeakSetup, const plan::PlannedCase*> setups;
  for (const plan::PlannedCase& planned : plan.cases) {
    if (planned.is_possible()) setups.emplace(peaks.setup_of(planned), &planned);
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

namespace {

// The sources of the rates in links_of().
std::string source_of_links(const config::Experiment& e) {
  std::vector<std::string> given, of_file;
  const auto note = [&](double stated, double in_file, const char* key, const char* key_in_file) {
    if (stated > 0) {
      given.emplace_back(key);
    } else if (in_file > 0) {
      of_file.emplace_back(key_in_file);
    }
  };
  const bool predicts = config::traits_of(e.backend).predicts();
  note(e.fabric.rank_bytes_per_s, e.hardware ? e.hardware->nvlink_bytes_per_s : 0, "rank", "nvlink");
  note(e.fabric.node_bytes_per_s, e.hardware && predicts ? e.hardware->node_bytes_per_s : 0, "node", "network");
  std::vector<std::string> sources;
  if (!given.empty()) sources.push_back(fmt::format("given in the configuration (fabric: {})", join(given, ", ")));
  if (!of_file.empty()) sources.push_back(fmt::format("hardware file {}: {}", e.hardware->name, join(of_file, ", ")));
  return join(sources, "; ");
}

}  // namespace

void fill_link_limits(store::Result& result, const plan::Plan& plan, const Machine& machine) {
  const config::Experiment& e = plan.experiment;
  result.link_source = source_of_links(e);
  for (store::ResultPoint& point : result.points) {
    const plan::PlannedCase& planned = plan.cases[point.case_index];
    const std::vector<int> node_of = plan::under_faults(e, planned.settings, machine.topology()).node_of;
    point.limit_bytes_per_s =
        workloads::max_bus_bandwidth(planned.settings, planned.layout, node_of, links_of(e, planned));
    if (point.limit_bytes_per_s > 0) point.limit_source = result.link_source;
  }
}

}  // namespace harness::sweep
