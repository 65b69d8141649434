#include "sweep/probe.h"

#include <algorithm>
#include <map>
#include <span>

#include "base/identity.h"
#include "base/text.h"
#include "job/job.h"
#include "sweep/rounds.h"
#include "workloads/operations.h"

namespace harness::sweep {

constexpr std::size_t most_named = 8;  // ranks, nodes or values

std::vector<std::string> compare_identities(const std::vector<NameValues>& by_rank,
                                            const std::vector<job::RankPlace>& places) {
  // name → value → ranks. Every rank has an entry for every name.
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
    // On a tie the value of the lowest rank wins, so that the answer does not depend on the order of values.
    const auto majority = std::ranges::max_element(values, [](const auto& a, const auto& b) {
      if (a.second.size() != b.second.size()) return a.second.size() < b.second.size();
      return a.second.front() > b.second.front();
    });
    std::vector<std::string> others;
    for (const auto& [value, ranks] : values) {
      if (value == majority->first) continue;
      std::vector<std::string> names;
      for (const std::size_t rank : ranks)
        names.push_back(fmt::format("rank {} ({})", rank, rank < places.size() ? places[rank].host : "?"));
      others.push_back(fmt::format("{} on {}", value, join_first(names, most_named)));
    }
    lines.push_back(
        fmt::format("{}: {} on {} ranks, but {}", name, majority->first, majority->second.size(), join(others, "; ")));
  }
  return lines;
}

void require_gpus(const std::vector<job::RankPlace>& places, bool share_gpus, const std::string& config) {
  const job::GpuShortage shortage = job::gpu_shortage(places);
  if (!shortage.blind.empty()) {
    const std::string instead = config.empty()
                                    ? ""
                                    : fmt::format(
                                          ". Without a GPU, `harness plan {} --ranks {}` shows what would run, and "
                                          "`backend: cpu` (configs/laptop.yaml) measures on CPU cores",
                                          shell_word(config), places.size());
    fail(
        "backend cuda needs an NVIDIA GPU for every rank, but ranks see none on {}: run `nvidia-smi` there, and look "
        "at CUDA_VISIBLE_DEVICES and the container's GPU options{}",
        join_first(shortage.blind, most_named), instead);
  }
  if (!shortage.crowded.empty() && !share_gpus) {
    fail(
        "backend cuda needs a GPU of its own for every rank, but {}. Start one rank per GPU (mpirun --map-by "
        "ppr:N:node), or make more GPUs visible (CUDA_VISIBLE_DEVICES){}",
        join_first(shortage.crowded, most_named),
        config.empty() ? "" : ". For functional tests only, ranks may share GPUs: --set measure.share_gpus=true");
  }
}

namespace {

// Two ranks on the same device would measure each other.
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

PeakSetup peak_setup_of(const plan::PlannedCase& planned) {
  const config::Settings& s = planned.settings;
  return {planned.layout.ranks(), s.threads, s.threads > 0 ? 0 : s.loader_threads(), s.precision};
}

// Whether the peak must be measured, because the configuration states none.
bool measures_peaks(const config::Experiment& e) {
  return !config::traits_of(e.backend).ranks_are_gpus && !e.hardware && !e.without_hardware && !(e.peak_flops > 0);
}

}  // namespace

machine::Topology topology_of(const std::vector<job::RankPlace>& places) {
  machine::Topology topology;
  for (const job::RankPlace& place : places) topology.node_of.push_back(place.node);
  return topology;
}

Machine probe(job::Job& job, const plan::Plan& plan) {
  const config::Experiment& e = plan.experiment;
  Machine machine;
  machine.places = job.places();
  if (!config::traits_of(e.backend).predicts()) {  // a prediction is not about this machine
    machine.environment = job::recorded_environment(job::own_environment());
  }
  if (const auto conflicts = job::contradictions(machine.environment, e); !conflicts.empty())
    throw Error(fmt::format("{}", fmt::join(conflicts, "\n")));

  // With all cores of the nodes, whatever the baseline uses; each case gets its share of the result.
  job::BlockRequest whole_node = block_request(e, plan.baseline(), job::Probe{}, {});
  whole_node.settings.threads = 0;
  whole_node.settings.data_file.clear();  // also without the threads of the data loader
  const job::BlockOutcome outcome = run_untimed(job, whole_node, [&](const job::BlockOutcome& failed) {
    machine.warnings.push_back("the first workers of the job failed and were started again: " + failed.reason);
  });
  if (!outcome.ok) {
    throw Error(fmt::format("the first workers of the job failed{}, so nothing was measured: {}",
                            machine.warnings.empty() ? "" : " each time that they were started", outcome.reason));
  }
  require_equal_identities(machine.places, outcome);
  if (!e.measure.share_gpus) require_own_devices(machine.places, outcome);

  const NameValues& identity = outcome.of<job::ProbeSamples>(0).identity;
  if (config::traits_of(e.backend).ranks_are_gpus) machine.device = value_of(identity, "device");
  machine.identity = build_identity();
  machine.identity.insert(machine.identity.end(), identity.begin(), identity.end());
  machine.peaks.add({whole_node.layout.ranks(), 0, 0, whole_node.settings.precision}, outcome.samples);
  return machine;
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

void measure_peaks(job::Job& job, const plan::Plan& plan, Peaks& peaks) {
  if (!measures_peaks(plan.experiment)) return;
  std::map<PeakSetup, const plan::PlannedCase*> setups;
  for (const plan::PlannedCase& planned : plan.cases) {
    if (planned.is_possible()) setups.emplace(peak_setup_of(planned), &planned);
  }
  for (const auto& [setup, planned] : setups) {
    // A sweep that is killed during the last measurement would be incomplete, although all its rounds are done.
    if (job.stop_requests() > 0 || out_of_time(job, 0)) return;
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
    if (peak.flops > 0 && result.peak_source.empty()) result.peak_source = peak.source;  // the baseline's
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
