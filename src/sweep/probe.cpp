#include "sweep/probe.h"

#include <algorithm>
#include <map>

#include "base/error.h"
#include "base/identity.h"
#include "job/environment.h"
#include "sweep/blocks.h"
#include "sweep/identity.h"

namespace harness::sweep {
namespace {

// Two ranks that a launcher shows the same device would measure each other.
void require_own_devices(const std::vector<job::RankPlace>& places, const job::BlockOutcome& probed) {
  std::map<std::pair<int, std::string>, std::size_t> taken;
  for (std::size_t rank = 0; rank < probed.samples.size(); ++rank) {
    const std::string& device = probed.of<job::ProbeSamples>(rank).device;
    if (device.empty()) continue;
    const auto [it, fresh] = taken.emplace(std::pair(places[rank].node, device), rank);
    if (fresh) continue;
    throw Error(fmt::format(
        "ranks {} and {} on {} use the same GPU ({}): have the launcher give each rank its own, or start no more "
        "ranks per node than it has GPUs. For functional tests only, `measure: {{share_gpus: true}}` allows sharing",
        it->second, rank, places[rank].host, device));
  }
}

void require_equal_identities(const std::vector<job::RankPlace>& places, const job::BlockOutcome& probed) {
  std::vector<NameValues> identities;
  for (std::size_t rank = 0; rank < probed.samples.size(); ++rank)
    identities.push_back(probed.of<job::ProbeSamples>(rank).identity);
  const auto differences = sweep::compare_identities(identities, places);
  if (differences.empty()) return;
  throw Error(fmt::format(
      "the ranks differ, so a measurement across them would be meaningless:\n  {}\n"
      "Install the same software and set the same environment on all nodes, or exclude the nodes that differ",
      fmt::join(differences, "\n  ")));
}

store::ResultRank rank_row(const Machine& machine, const job::RankPlace& place, int baseline_threads) {
  const int threads =
      baseline_threads > 0 ? baseline_threads : std::max(1, place.cores / std::max(1, place.local_ranks));
  const std::string& device = machine.device.empty() ? place.device : machine.device;
  return {place.rank, place.local_rank, place.node, place.host, device, place.cores, threads, place.memory_bytes};
}

}  // namespace

machine::Topology topology_of(const std::vector<job::RankPlace>& places) {
  machine::Topology topology;
  for (const job::RankPlace& place : places) topology.node_of.push_back(place.node);
  return topology;
}

machine::Topology Machine::topology() const {
  return topology_of(places);
}

Machine probe(job::Job& job, const plan::Plan& plan) {
  const config::Experiment& e = plan.experiment;
  Machine machine;
  machine.places = job.places();
  if (!config::traits_of(e.backend).predicts()) {  // else this machine is not the one that it is about
    machine.environment = job::recorded_environment(job::own_environment());
  }
  if (const auto conflicts = job::contradictions(machine.environment, e); !conflicts.empty())
    throw Error(fmt::format("{}", fmt::join(conflicts, "\n")));

  // All cores of the nodes, whatever share of them the baseline uses: what they reach, each case gets its part of.
  job::BlockRequest whole_node = block_request(e, plan.baseline(), job::Probe{}, {});
  whole_node.settings.threads = 0;
  const job::BlockOutcome outcome = run_untimed(job, whole_node, [&](const job::BlockOutcome& failed) {
    machine.warnings.push_back("the first workers of the job failed and were started again: " + failed.reason);
  });
  if (!outcome.ok) {
    throw Error(fmt::format("the first workers of the job failed{}, so nothing was measured: {}",
                            machine.warnings.empty() ? "" : " each time that they were started", outcome.reason));
  }
  machine.conditions = outcome.conditions;
  require_equal_identities(machine.places, outcome);
  if (!e.measure.share_gpus) require_own_devices(machine.places, outcome);

  const NameValues& identity = outcome.of<job::ProbeSamples>(0).identity;
  if (config::traits_of(e.backend).ranks_are_gpus) machine.device = value_of(identity, "device");
  machine.identity = build_identity();
  machine.identity.insert(machine.identity.end(), identity.begin(), identity.end());
  std::vector<std::string> bound;
  for (std::size_t rank = 0; rank < outcome.samples.size(); ++rank)
    bound.push_back(outcome.of<job::ProbeSamples>(rank).bound);
  if (std::ranges::any_of(bound, [](const std::string& text) { return !text.empty(); }))
    machine.identity.emplace_back("worker binding", said_by_ranks(bound));
  for (const job::Samples& s : outcome.samples)
    machine.warnings.insert(machine.warnings.end(), s.warnings.begin(), s.warnings.end());
  machine.peaks = Peaks(machine.places);
  machine.peaks.add({whole_node.layout.ranks(), 0, whole_node.settings.precision}, outcome.samples);
  for (const job::RankPlace& place : machine.places)
    machine.ranks.push_back(rank_row(machine, place, e.baseline.threads));
  return machine;
}

}  // namespace harness::sweep
