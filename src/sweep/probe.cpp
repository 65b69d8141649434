#include "sweep/probe.h"

#include <algorithm>
#include <cstdint>
#include <map>

#include "base/error.h"
#include "base/identity.h"
#include "job/environment.h"
#include "sweep/rounds.h"

namespace harness::sweep {
namespace {

constexpr std::size_t most_named = 8;  // ranks, nodes or values

std::string name_ranks(const std::vector<std::size_t>& ranks, const std::vector<job::RankPlace>& places) {
  std::vector<std::string> names;
  for (const std::size_t rank : ranks)
    names.push_back(fmt::format("rank {} ({})", rank, rank < places.size() ? places[rank].host : "?"));
  return join_first(names, most_named);
}

}  // namespace

std::vector<std::string> compare_identities(const std::vector<NameValues>& by_rank,
                                            const std::vector<job::RankPlace>& places) {
  // name → value → ranks. Every rank is entered under every name.
  std::map<std::string, std::map<std::string, std::vector<std::size_t>>> seen;
  for (const NameValues& identity : by_rank) {
    for (const auto& [name, value] : identity) seen[name];
  }
  for (std::size_t rank = 0; rank < by_rank.size(); ++rank) {
    const std::map<std::string, std::string> mine(by_rank[rank].begin(), by_rank[rank].end());
    for (auto& [name, values] : seen) {
      const auto at = mine.find(name);
      values[at == mine.end() ? "absent" : at->second].push_back(rank);
    }
  }
  std::vector<std::string> lines;
  for (const auto& [name, values] : seen) {
    if (values.size() == 1) continue;
    // On a tie the value of the lowest rank wins, so that the answer does not depend on how values sort.
    const auto majority = std::ranges::max_element(values, [](const auto& a, const auto& b) {
      if (a.second.size() != b.second.size()) return a.second.size() < b.second.size();
      return a.second.front() > b.second.front();
    });
    std::vector<std::string> others;
    for (const auto& [value, ranks] : values) {
      if (value != majority->first) others.push_back(fmt::format("{} on {}", value, name_ranks(ranks, places)));
    }
    lines.push_back(
        fmt::format("{}: {} on {} ranks, but {}", name, majority->first, majority->second.size(), join(others, "; ")));
  }
  return lines;
}

std::string said_by_ranks(const std::vector<std::string>& by_rank) {
  std::vector<std::pair<std::string, std::int64_t>> values;
  for (const std::string& value : by_rank) {
    const auto at = std::ranges::find(values, value, &std::pair<std::string, std::int64_t>::first);
    if (at == values.end()) {
      values.emplace_back(value, 1);
    } else {
      ++at->second;
    }
  }
  std::vector<std::string> parts;
  for (const auto& [value, ranks] : values) parts.push_back(fmt::format("{} ({})", value, plural(ranks, "rank")));
  return join_first(parts, most_named);
}

void require_gpus(const std::vector<job::RankPlace>& places, bool share_gpus, const std::string& config) {
  std::vector<std::string> without, crowded;
  for (const auto& [number, node] : job::gpus_by_node(places)) {
    const auto gpus = std::ssize(node.gpus);
    if (node.unknown) continue;
    if (node.blind_rank) {
      without.push_back(node.host);
    } else if (node.ranks > gpus && !share_gpus) {
      crowded.push_back(fmt::format("{} has {} and {}", node.host, plural(node.ranks, "rank"), plural(gpus, "GPU")));
    }
  }
  if (!without.empty()) {
    fail(
        "backend cuda needs an NVIDIA GPU for every rank, but ranks see none on {}: run `nvidia-smi` there, and look "
        "at CUDA_VISIBLE_DEVICES and the container's GPU options. Without a GPU, `harness plan {} --ranks {}` shows "
        "what would run, and `backend: cpu` (configs/laptop.yaml) measures on CPU cores",
        join_first(without, most_named), shell_word(config), places.size());
  }
  if (!crowded.empty()) {
    fail(
        "backend cuda needs a GPU of its own for every rank, but {}. Start one rank per GPU (mpirun --map-by "
        "ppr:N:node), or make more GPUs visible (CUDA_VISIBLE_DEVICES). For functional tests only, ranks may share "
        "GPUs: --set measure.share_gpus=true",
        join_first(crowded, most_named));
  }
}

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

store::ResultRank rank_row(const Machine& machine, const job::RankPlace& place, const config::Settings& baseline) {
  const int threads = baseline.compute_threads(place.cores / std::max(1, place.local_ranks));
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
  whole_node.settings.data_file.clear();  // nor what its data loader takes
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
  machine.peaks.add({whole_node.layout.ranks(), 0, 0, whole_node.settings.precision}, outcome.samples);
  for (const job::RankPlace& place : machine.places) machine.ranks.push_back(rank_row(machine, place, e.baseline));
  return machine;
}

}  // namespace harness::sweep
