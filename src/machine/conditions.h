#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace harness::machine {

// Plain values about the machines of a job, for plans and results: which ranks share a node, and what GPUs and CPUs did
// during a block.

/// Which ranks of a job share a node.
struct Topology {
  std::vector<int> node_of;  // by rank; nodes are numbered from 0

  /// Numbers ranks node by node; all nodes but perhaps the last have `ranks_per_node`.
  static Topology node_by_node(int ranks, int ranks_per_node) {
    Topology topology;
    for (int rank = 0; rank < ranks; ++rank) topology.node_of.push_back(rank / ranks_per_node);
    return topology;
  }

  bool is_known() const { return !node_of.empty(); }
  int nodes() const { return node_of.empty() ? 0 : *std::ranges::max_element(node_of) + 1; }
};

/// The state that one GPU reports at one moment. NaN: not reported.
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

/// Returns means and extremes over the samples that have a value, and the union of the bits. Energy and the maximum
/// possible clock are not in samples and stay NaN.
GpuStatistics summarise(std::span<const GpuSample> samples);

/// Combines several devices: means and extremes of the known values, the union of the bits, total energy and samples. A
/// device that does not report its energy counts as the mean of the others.
GpuStatistics together(std::span<const GpuStatistics> devices);

/// NVML's throttle bits (nvmlClocksEventReasons of nvml.h) as words, in the order of the bits: "power cap, hardware
/// thermal slowdown, reason 0x400" (a bit that has no name here). Omits reasons that do not invalidate a measurement:
/// idle, and clocks set on purpose. "" if there are no others.
std::string harmful_throttling(std::uint64_t bits);
/// Of these bits: slowdown, thermal slowdown and power brake by the hardware; thermal slowdown by the driver;
/// application clocks.
inline constexpr std::uint64_t throttled_by_hardware = 0x8 | 0x40 | 0x80, throttled_by_heat = 0x20,
                               throttled_by_setting = 0x2;
/// harmful_throttling() of a GPU that is only at its power limit: usual in training, where GEMMs draw all available
/// power.
inline constexpr std::string_view power_cap = "power cap";

/// Other activity of the machine during a block: for each figure, the worst node's. NaN: not known.
struct Conditions {
  static constexpr double nan = std::numeric_limits<double>::quiet_NaN();
  double steal_share = nan;    // share of the node's CPU time taken by other guests of its host
  double foreign_cores = nan;  // kept busy by processes besides the job's supervisors and workers, on average
  std::string busiest_host;    // the host of foreign_cores
};

/// The bandwidth of copies between a GPU and pinned memory of its host, in bytes/s. 0: not measured.
struct HostCopies {
  double to_device_bytes_per_s = 0, from_device_bytes_per_s = 0;  // one direction at a time
  double both_bytes_per_s = 0;                                    // both at once, summed
};

}  // namespace harness::machine
