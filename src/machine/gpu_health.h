#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace harness::machine {

/// What the driver says of a GPU's state and settings, without load. Nothing: it does not say, or the GPU has none of
/// it.
struct GpuHealth {
  std::string pci_bus_id;  // "0000:1b:00.0", in lower case: as /sys writes it
  std::string name, vbios;
  std::optional<bool> persistence, mig, ecc;
  std::optional<int> compute_mode;               // 0: any process may use it
  std::optional<std::uint64_t> ecc_uncorrected;  // since the driver was loaded
  std::optional<unsigned> rows_remapped_uncorrected;
  std::optional<bool> row_remap_pending, row_remap_failed;
  std::optional<double> power_limit_w, default_power_limit_w, temperature_c, bar1_bytes, memory_bytes;
  std::optional<unsigned> pcie_width, pcie_max_width, pcie_replays;
  std::optional<std::uint64_t> throttle_reasons;  // NVML's bits
  std::optional<unsigned> processes;              // that have a context on it
  std::vector<bool> nvlinks;                      // by link: is it active; empty: it has none
  std::optional<int> fabric_state;                // NVLink's fabric: 1 not started, 2 in progress, 3 completed
  std::optional<int> fabric_status;               // 0: success
  std::optional<unsigned> fabric_health;          // NVML's bits
  std::string fabric_cluster;                     // UUID of the NVLink domain of several nodes; "": none
  std::optional<unsigned> fabric_clique;          // its part in which all reach all
  /// What the driver wants done: 0 nothing, 1 reset the GPU, 2 restart the node, 3 let jobs with peers end, 4 the same
  /// and reset.
  std::optional<unsigned> recovery_action;
  std::optional<std::uint64_t> nvlink_recoveries, nvlink_crc_errors;  // of all links, since the driver was loaded
};

struct GpuReport {
  std::string unavailable;  // why there is none; "": there is one
  std::string driver;       // "570.86.15"
  std::vector<GpuHealth> gpus;
};

}  // namespace harness::machine
