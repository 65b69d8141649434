#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace harness::machine {

// Plain values about the machines of a job, which plans and results have: which ranks share a node, and what GPUs and
// CPUs did during a block.

/// Which ranks of a job share a node.
struct Topology {
  std::vector<int> node_of;  // by rank; nodes are numbered from 0

  /// Ranks numbered node by node, each node with as many but perhaps the last.
  static Topology node_by_node(int ranks, int ranks_per_node) {
    Topology topology;
    for (int rank = 0; rank < ranks; ++rank) topology.node_of.push_back(rank / ranks_per_node);
    return topology;
  }

  bool is_known() const { return !node_of.empty(); }
  int nodes() const { return node_of.empty() ? 0 : *std::ranges::max_element(node_of) + 1; }
};

/// One GPU's own account of itself at one moment. NaN: it did not say.
struct GpuSample {
  double utilisation = std::numeric_limits<double>::quiet_NaN();  // 0..1: share of time in which some kernel ran
  double sm_clock_hz = std::numeric_limits<double>::quiet_NaN();
  double power_w = std::numeric_limits<double>::quiet_NaN();
  double temperature_c = std::numeric_limits<double>::quiet_NaN();
  double memory_used_bytes = std::numeric_limits<double>::quiet_NaN();  // of the whole device, all processes
  std::uint64_t throttle_reasons = 0;                                   // NVML's bits
};

/// The activity of one GPU over a block, or of several together. NaN: not known.
struct GpuStatistics {
  std::int64_t samples = 0;
  double mean_utilisation = std::numeric_limits<double>::quiet_NaN();  // 0..1
  double mean_sm_clock_hz = std::numeric_limits<double>::quiet_NaN();
  double min_sm_clock_hz = std::numeric_limits<double>::quiet_NaN();
  double max_possible_sm_clock_hz = std::numeric_limits<double>::quiet_NaN();  // of the device
  double mean_power_w = std::numeric_limits<double>::quiet_NaN();
  double max_power_w = std::numeric_limits<double>::quiet_NaN();
  double max_temperature_c = std::numeric_limits<double>::quiet_NaN();
  double max_memory_used_bytes = std::numeric_limits<double>::quiet_NaN();
  double energy_j = std::numeric_limits<double>::quiet_NaN();  // by the device's own counter, first sample to last
  std::uint64_t throttle_reasons = 0;                          // of all samples together
};

/// Means, extremes and the union of the bits; a value that some samples lack is taken over the others. Energy and what
/// is possible are not in samples and stay NaN.
GpuStatistics summarise(std::span<const GpuSample> samples);

/// Joins several devices: means and extremes of what they say, the union of the bits, energy and samples of all. A
/// device that does not tell its energy counts as the mean of the others.
GpuStatistics together(std::span<const GpuStatistics> devices);

/// NVML's throttle bits (nvmlClocksEventReasons of nvml.h) as words, in the order of the bits: "power cap, hardware
/// thermal slowdown, reason 0x400" (a bit that has no name here). Without those that say nothing against a measurement,
/// idle and clocks set by someone on purpose; "" when there are no others.
std::string harmful_throttling(std::uint64_t bits);
/// harmful_throttling() of a GPU that is at its power limit and nothing else: usual in training, where matrix products
/// draw all the power that there is.
inline constexpr std::string_view power_cap = "power cap";

/// Everything else that the machine did during a block: of each figure the worst node's. NaN: not known.
struct Conditions {
  static constexpr double nan = std::numeric_limits<double>::quiet_NaN();
  double steal_share = nan;    // of the node's CPU time, taken by other guests of its host
  double foreign_cores = nan;  // that processes besides the job's supervisors and workers kept busy, on average
  std::string busiest_host;    // where foreign_cores is from
};

/// The bandwidth of copies between a GPU and pinned memory of its host, in bytes/s. 0: not measured.
struct HostCopies {
  double to_device_bytes_per_s = 0, from_device_bytes_per_s = 0;  // each direction by itself
  double both_bytes_per_s = 0;                                    // both at once, added
};

}  // namespace harness::machine
