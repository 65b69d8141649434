#include <unistd.h>

#include <algorithm>
#include <map>

#include "base/error.h"
#include "base/units.h"
#include "cli/sweep_run.h"
#include "cli/version.h"
#include "config/case_environment.h"
#include "launch/environment.h"
#include "launch/identity.h"
#include "plan/check_settings.h"
#include "workloads/limits.h"

namespace harness {
namespace {

int local_ranks(const std::vector<RankPlace>& places, int node, int ranks) {
  return static_cast<int>(
      std::count_if(places.begin(), places.begin() + ranks, [&](const RankPlace& p) { return p.node == node; }));
}

}  // namespace

void SweepRun::warn(const std::string& text) {
  if (std::find(result_.warnings.begin(), result_.warnings.end(), text) != result_.warnings.end()) return;
  result_.warnings.push_back(text);
  if (file_) file_->add_warning(text);
}

BlockRequest SweepRun::request(int case_index, BlockMode mode) const {
  const Experiment& e = prepared_.plan.experiment;
  const Case& c = prepared_.plan.cases[static_cast<std::size_t>(case_index)];
  BlockRequest r;
  r.case_name = c.name;
  r.backend = e.backend;
  r.model = e.model;
  r.settings = c.settings;
  r.layout = c.layout;
  r.mode = mode;
  r.warmup_steps = e.measure.warmup_steps;
  r.steps = e.measure.steps;
  r.seed = e.measure.seed;
  r.deadlines = e.measure.deadlines;
  r.memory_limit_bytes = e.measure.memory_limit_bytes;
  r.share_gpus = e.measure.share_gpus;
  if (mode == BlockMode::timed) r.wrap = wrap_;
  r.tuning = result_.tuning;
  // A log costs time; the observing worker turns it on for itself.
  if (e.backend == BackendKind::cuda) r.environment.emplace_back("NCCL_DEBUG", "WARN");
  return r;
}

BlockOutcome SweepRun::run(int case_index, BlockMode mode) {
  return job_.run(request(case_index, mode));
}

void SweepRun::probe() {
  const Experiment& e = prepared_.plan.experiment;
  environment_ = recorded_environment(own_environment());
  if (const auto fights = contradictions(environment_, e); !fights.empty())
    throw Error(fmt::format("{}", fmt::join(fights, "\n")));

  progress_.say(e.backend == BackendKind::cpu ? "checking that all ranks agree, measuring the peak of matrix products"
                                              : "checking that all ranks agree and that each has a GPU of its own");
  // The peak is the whole node's, whatever share of it the baseline uses: fill_peaks gives each case its part.
  BlockRequest whole_node = request(0, BlockMode::probe);
  whole_node.settings.threads = 0;
  const BlockOutcome outcome = job_.run(whole_node);
  if (!outcome.ok) throw Error("the first worker of the job failed, nothing was measured: " + outcome.reason);

  std::vector<std::vector<std::pair<std::string, std::string>>> identities;
  for (const BlockSamples& s : outcome.samples) identities.push_back(s.identity);
  if (const auto differ = compare_identities(identities, job_.places()); !differ.empty()) {
    throw Error(
        fmt::format("the ranks are not alike, so nothing they measure together would mean anything:\n  {}\n"
                    "make them alike, or leave the odd ones out of the job",
                    fmt::join(differ, "\n  ")));
  }
  const std::string device = value_of(identities.front(), "device");
  if (e.backend == BackendKind::cuda && !device.empty()) select_hardware(device);
  check_devices(outcome.samples);
  result_.identity = build_identity();
  for (const auto& pair : identities.front()) result_.identity.push_back(pair);
  result_.environment = environment_;
  for (const BlockSamples& s : outcome.samples) {
    for (const std::string& w : s.warnings) warn(w);
  }
  const auto& places = job_.places();
  for (const RankPlace& p : places) {
    const int local = local_ranks(places, p.node, job_.size());
    const int threads = e.baseline.threads > 0 ? e.baseline.threads : std::max(1, p.cores / std::max(1, local));
    result_.rank_table.push_back(
        {p.rank, p.local_rank, p.node, p.host, device.empty() ? p.device : device, p.cores, threads, p.memory_bytes});
    result_.nodes = std::max(result_.nodes, p.node + 1);
    if (p.one_core_bound) {
      warn(
          "the launcher bound each rank to one core; workers were given their share of the node instead "
          "(--bind-to none says so to mpirun)");
    }
  }
  fill_peaks(outcome.samples);
  fill_limits();
}

// Two ranks that a launcher shows the same device would measure each other.
void SweepRun::check_devices(const std::vector<BlockSamples>& samples) const {
  if (prepared_.plan.experiment.measure.share_gpus) return;
  std::map<std::pair<int, std::string>, std::size_t> taken;
  for (std::size_t rank = 0; rank < samples.size(); ++rank) {
    if (samples[rank].device.empty()) continue;
    const RankPlace& place = job_.places()[rank];
    const auto [it, fresh] = taken.emplace(std::pair(place.node, samples[rank].device), rank);
    if (fresh) continue;
    throw Error(fmt::format(
        "ranks {} and {} on {} have the same GPU ({}): let the launcher give each its own, or start as many "
        "ranks per node as it has GPUs. `measure: {{share_gpus: true}}` allows it, for tests of function",
        it->second, rank, place.host, samples[rank].device));
  }
}

// The GPU that all ranks have must be the one that the configuration counts with; if it names none, its file is found
// by the GPU's name.
void SweepRun::select_hardware(const std::string& device) {
  Experiment experiment = prepared_.plan.experiment;
  const auto matching = hardware_for(experiment, device);
  if (!matching) return;
  experiment.hardware = *matching;
  // What this GPU cannot do is known only now.
  const bool as_planned = std::all_of(prepared_.plan.cases.begin(), prepared_.plan.cases.end(), [&](const Case& c) {
    return !c.impossible.empty() || check_settings(c.settings, experiment.hardware).empty();
  });
  if (as_planned) {
    prepared_.plan.experiment = std::move(experiment);
    return;
  }
  prepared_ = prepare(experiment, prepared_.plan.ranks, prepared_.only);
  result_ = planned_result(prepared_);
}

// A configured peak counts per accelerator. A measured one is what all ranks of a node reach together, shared out: a
// case with fewer ranks per node has more of the node to each, up to the threads it uses.
void SweepRun::fill_peaks(const std::vector<BlockSamples>& samples) {
  const Experiment& e = prepared_.plan.experiment;
  const auto& places = job_.places();
  for (std::size_t i = 0; i < result_.cases.size(); ++i) {
    if (result_.cases[i].status == CaseStatus::impossible) continue;
    const Case& c = prepared_.plan.cases[i];
    double& peak = result_.cases[i].peak_flops_per_rank;
    std::string source;
    peak = configured_peak_flops(e, c.settings.precision, source);
    if (peak > 0) {
      result_.peak_source = source;
      continue;
    }
    if (e.hardware || e.without_hardware || e.backend != BackendKind::cpu) continue;  // unknown stays unknown: no MFU
    const int ranks = c.layout.ranks();
    double total = 0;
    for (int rank = 0; rank < ranks; ++rank) {
      const RankPlace& p = places[static_cast<std::size_t>(rank)];
      double node_flops = 0;
      for (std::size_t other = 0; other < samples.size(); ++other) {
        if (places[other].node != p.node) continue;
        node_flops +=
            c.settings.precision == Precision::bf16 ? samples[other].peak_flops_bf16 : samples[other].peak_flops_fp32;
      }
      const int local = std::max(1, local_ranks(places, p.node, ranks));
      const int threads = c.settings.threads > 0 ? c.settings.threads : std::max(1, p.cores / local);
      total += node_flops * std::min(1.0, static_cast<double>(threads) * local / p.cores) / local;
    }
    peak = total / ranks;
    result_.peak_source = "measured: square matrix products of random numbers on all ranks at once, by precision";
  }
  if (result_.peak_source.empty()) result_.peak_source = "unknown";
  if (e.hardware) result_.memory_bytes_per_s = e.hardware->memory_bytes_per_s;
}

// What carries messages, as far as it is stated.
Links SweepRun::links_of(const Case& c) const {
  const Experiment& e = prepared_.plan.experiment;
  Links links{e.fabric.rank_bytes_per_s, e.fabric.node_bytes_per_s, false, false};
  if (links.rank_bytes_per_s == 0 && e.hardware) links.rank_bytes_per_s = e.hardware->nvlink_bytes_per_s;
  constexpr int hopper = 90;  // the first whose NVLink switches add up
  const int capability = e.hardware ? e.hardware->compute_capability : 0;
  links.switches_reduce_nodes = e.backend == BackendKind::cuda && (capability == 0 || capability >= hopper);
  const auto collnet = c.settings.nccl.find("nccl_collnet");
  links.switches_reduce_network = collnet != c.settings.nccl.end() && collnet->second == "true";
  return links;
}

std::vector<int> SweepRun::nodes_of_ranks() const {
  std::vector<int> nodes;
  for (const RankPlace& place : job_.places()) nodes.push_back(place.node);
  return nodes;
}

// What the stated links allow, beside what will be measured.
void SweepRun::fill_limits() {
  const Experiment& e = prepared_.plan.experiment;
  if (e.fabric.rank_bytes_per_s > 0 || e.fabric.node_bytes_per_s > 0) {
    result_.link_source = "given in the configuration (fabric)";
  }
  if (e.fabric.rank_bytes_per_s == 0 && e.hardware && e.hardware->nvlink_bytes_per_s > 0) {
    result_.link_source +=
        (result_.link_source.empty() ? "" : "; ") + ("hardware file " + e.hardware->name + ": nvlink");
  }
  const std::vector<int> node_of = nodes_of_ranks();
  for (ResultPoint& point : result_.points) {
    const Case& c = prepared_.plan.cases[static_cast<std::size_t>(point.case_index)];
    point.limit_bytes_per_s = highest_bus_bandwidth(c.settings, c.layout, node_of, links_of(c));
    if (point.limit_bytes_per_s > 0) point.limit_source = result_.link_source;
  }
}

}  // namespace harness
