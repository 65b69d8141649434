#include "sweep/limits_of_machine.h"

#include <algorithm>

#include "plan/prepare.h"

namespace harness::sweep {
namespace {

// A rank's part of what its node reached, by the threads that the case uses there.
double measured_share(const Machine& machine, const plan::PlannedCase& planned, const launch::RankPlace& place) {
  const bool bf16 = planned.settings.precision == config::Precision::bf16;
  const std::vector<double>& flops = bf16 ? machine.bf16_flops : machine.fp32_flops;
  double node_flops = 0;
  for (std::size_t rank = 0; rank < flops.size(); ++rank) {
    if (machine.places[rank].node == place.node) node_flops += flops[rank];
  }
  const int local = std::max(1, machine.local_ranks(place.node, planned.layout.ranks()));
  const int threads = planned.settings.threads > 0 ? planned.settings.threads : std::max(1, place.cores / local);
  return node_flops * std::min(1.0, static_cast<double>(threads) * local / place.cores) / local;
}

double measured_peak(const Machine& machine, const plan::PlannedCase& planned) {
  const int ranks = planned.layout.ranks();
  double total = 0;
  for (const launch::RankPlace& place : machine.places) {
    if (place.rank < ranks) total += measured_share(machine, planned, place);
  }
  return total / ranks;
}

}  // namespace

void fill_peaks(store::Result& result, const plan::Plan& plan, const Machine& machine) {
  const config::Experiment& e = plan.experiment;
  // Without a configured peak and without a measurement, the peak is unknown and there is no MFU.
  const bool measured = !e.hardware && !e.without_hardware && e.backend == config::BackendKind::cpu;
  for (std::size_t i = 0; i < plan.cases.size(); ++i) {
    const plan::PlannedCase& planned = plan.cases[i];
    if (!planned.is_possible()) continue;
    const plan::Peak peak = plan::configured_peak(e, planned.settings.precision);
    result.cases[i].peak_flops_per_rank = peak.flops;
    if (peak.flops > 0) {
      result.peak_source = peak.source;
    } else if (measured) {
      result.cases[i].peak_flops_per_rank = measured_peak(machine, planned);
      result.peak_source = "measured: square matrix products of random numbers on all ranks at once, by precision";
    }
  }
  if (result.peak_source.empty()) result.peak_source = "unknown";
  if (e.hardware) result.memory_bytes_per_s = e.hardware->memory_bytes_per_s;
}

workloads::Links links_of(const config::Experiment& experiment, const plan::PlannedCase& planned) {
  workloads::Links links{experiment.fabric.rank_bytes_per_s, experiment.fabric.node_bytes_per_s, false, false};
  const auto& hardware = experiment.hardware;
  if (links.rank_bytes_per_s == 0 && hardware) links.rank_bytes_per_s = hardware->nvlink_bytes_per_s;
  constexpr int hopper = 90;  // the first whose NVLink switches add up
  const int capability = hardware ? hardware->compute_capability : 0;
  links.switches_reduce_nodes =
      experiment.backend == config::BackendKind::cuda && (capability == 0 || capability >= hopper);
  const auto collnet = planned.settings.nccl.find("nccl_collnet");
  links.switches_reduce_network = collnet != planned.settings.nccl.end() && collnet->second == "true";
  return links;
}

void fill_link_limits(store::Result& result, const plan::Plan& plan, const Machine& machine) {
  const config::Experiment& e = plan.experiment;
  if (e.fabric.rank_bytes_per_s > 0 || e.fabric.node_bytes_per_s > 0) {
    result.link_source = "given in the configuration (fabric)";
  }
  if (e.fabric.rank_bytes_per_s == 0 && e.hardware && e.hardware->nvlink_bytes_per_s > 0) {
    if (!result.link_source.empty()) result.link_source += "; ";
    result.link_source += "hardware file " + e.hardware->name + ": nvlink";
  }
  const std::vector<int> node_of = machine.node_of_ranks();
  for (store::ResultPoint& point : result.points) {
    const plan::PlannedCase& planned = plan.cases[point.case_index];
    point.limit_bytes_per_s =
        workloads::max_bus_bandwidth(planned.settings, planned.layout, node_of, links_of(e, planned));
    if (point.limit_bytes_per_s > 0) point.limit_source = result.link_source;
  }
}

}  // namespace harness::sweep
