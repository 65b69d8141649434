#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "machine/conditions.h"

namespace harness::machine {

/// The GPUs of a node as the operating system lists them, without opening a device or loading the driver.
struct GpuView {
  int on_node = -1;                // visible to a rank or not; -1: unknown
  int count = -1;                  // visible to this rank; -1: unknown
  std::vector<std::string> names;  // of these: "3", or "GPU-8f1c…" if the launcher gives UUIDs; empty if unknown
};

/// The launcher's environment variables about a process's GPUs.
struct GpuEnvironment {
  bool restricted = false;  // CUDA_VISIBLE_DEVICES is set
  std::string visible;      // its value
  std::string own_task;     // the task, if each may number its GPUs from 0 (Slurm's device cgroups); else ""
};

/// `root` replaces "/" in tests.
GpuView find_gpus(const GpuEnvironment& environment, const std::filesystem::path& root = "/");

/// A GPU's state and settings without load, as the driver reports them. nullopt: not reported, or the GPU lacks it.
struct GpuHealth {
  std::string pci_bus_id;  // "0000:1b:00.0", in lower case: as /sys writes it
  std::string name;        // as nvidia-smi gives it
  std::optional<bool> persistence, mig;
  std::optional<int> compute_mode;               // 0: any process may use it
  std::optional<std::uint64_t> ecc_uncorrected;  // since the driver was loaded
  std::optional<bool> row_remap_pending, row_remap_failed;
  std::optional<double> power_limit_w, default_power_limit_w, bar1_bytes, memory_bytes;
  std::optional<unsigned> pcie_width, pcie_max_width;
  std::optional<std::uint64_t> throttle_reasons;  // NVML's bits
  std::optional<unsigned> processes;              // that have a context on it
  std::vector<bool> nvlinks;                      // by link: whether it is active; empty: there are none
  std::optional<int> fabric_state;                // NVLink's fabric: 1 not started, 2 in progress, 3 completed
  std::optional<int> fabric_status;               // 0: success
  std::optional<unsigned> fabric_health;          // NVML's bits
  /// The recovery action that the driver requests: 0 none, 1 reset the GPU, 2 reboot the node, 3 drain peer-to-peer
  /// jobs, 4 drain and reset.
  std::optional<unsigned> recovery_action;
  std::optional<std::uint64_t> nvlink_recoveries, nvlink_crc_errors;  // of all links, since the driver was loaded
};

struct GpuReport {
  std::string unavailable;  // why there is no report; "": there is one
  std::string driver;       // "570.86.15"
  std::vector<GpuHealth> gpus;
};

/// Returns state and settings of all GPUs of this machine, including those that CUDA_VISIBLE_DEVICES hides, as NVML
/// (libnvidia-ml.so.1, which comes with the NVIDIA driver) reports them. Creates no CUDA context. A faulty driver may
/// take long.
GpuReport gpu_report();

/// Samples one GPU through NVML on its own thread, ten times a second. Never throws for a missing driver.
class GpuMonitor {
 public:
  /// pci_bus_id as CUDA gives it: "0000:18:00.0".
  explicit GpuMonitor(const std::string& pci_bus_id);
  ~GpuMonitor();  // tells the thread to end and does not wait for it
  GpuMonitor(const GpuMonitor&) = delete;
  GpuMonitor& operator=(const GpuMonitor&) = delete;

  /// "" when this GPU can be watched, else why not.
  const std::string& unavailable() const { return problem_; }
  /// Starts sampling and discards earlier samples.
  void start();
  /// Ends the sampling, takes a last sample and returns the statistics since start(). Waits for the thread, but no
  /// longer than two seconds: a driver that hangs must not hang us. All NaN when unavailable or not started.
  GpuStatistics stop();

 private:
  struct Watch;
  std::string problem_;
  std::shared_ptr<Watch> watch_;
};

}  // namespace harness::machine
