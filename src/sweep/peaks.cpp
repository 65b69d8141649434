#include "sweep/peaks.h"

#include <algorithm>

#include "sweep/blocks.h"

namespace harness::sweep {
namespace {

void keep_larger(std::map<int, double>& best, const std::map<int, double>& found) {
  for (const auto& [node, flops] : found) best[node] = std::max(best[node], flops);
}

double value_at(const std::map<int, double>& by_node, int node) {
  const auto it = by_node.find(node);
  return it == by_node.end() ? 0.0 : it->second;
}

// Killed in the middle, a sweep whose rounds are all there would not be complete.
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

}  // namespace harness::sweep
