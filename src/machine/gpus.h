#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "machine/conditions.h"

namespace harness::machine {

/// The GPUs of a node as the operating system lists them: nothing here opens a device or loads the driver.
struct GpuView {
  int on_node = -1;                // whether or not a rank sees them; -1: unknown
  int count = -1;                  // that this rank sees; -1: unknown
  std::vector<std::string> names;  // of these: "3", or "GPU-8f1c…" if the launcher gives UUIDs; empty if unknown
};

/// Everything that a launcher tells a process about its GPUs, in environment variables.
struct GpuEnvironment {
  bool restricted = false;  // CUDA_VISIBLE_DEVICES is set
  std::string visible;      // its value
  std::string own_task;     // the task, where each may number its GPUs from 0 (Slurm's device groups); else ""
};

/// `root` replaces "/" in tests.
GpuView find_gpus(const GpuEnvironment& environment, const std::filesystem::path& root = "/");

/// The driver's account of a GPU's state and settings, without load. Nothing: it does not say, or the GPU has none of
/// it.
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
  std::vector<bool> nvlinks;                      // by link: is it active; empty: it has none
  std::optional<int> fabric_state;                // NVLink's fabric: 1 not started, 2 in progress, 3 completed
  std::optional<int> fabric_status;               // 0: success
  std::optional<unsigned> fabric_health;          // NVML's bits
  /// The action that the driver asks for: 0 nothing, 1 reset the GPU, 2 restart the node, 3 let jobs with peers end, 4
  /// the same and reset.
  std::optional<unsigned> recovery_action;
  std::optional<std::uint64_t> nvlink_recoveries, nvlink_crc_errors;  // of all links, since the driver was loaded
};

struct GpuReport {
  std::string unavailable;  // why there is none; "": there is one
  std::string driver;       // "570.86.15"
  std::vector<GpuHealth> gpus;
};

/// NVML: libnvidia-ml.so.1, which comes with the NVIDIA driver. It opens no CUDA context, and any thread may ask it. A
/// function that this driver lacks, or that fails, leaves its own value unknown.
class Nvml {
 public:
  using Device = struct nvmlDevice_st*;

  /// Loaded and initialised when first asked for. Never unloaded: a thread that hangs in it may outlive main().
  static const Nvml& get();

  /// "" when it can be used, else why not.
  const std::string& unavailable() const { return problem_; }
  /// State and settings of all GPUs of this machine, whatever CUDA_VISIBLE_DEVICES hides. A driver in trouble may take
  /// long.
  GpuReport report() const;

  // Only when it is available:

  /// pci_bus_id as CUDA gives it ("0000:18:00.0"): NVML numbers devices otherwise than CUDA does. nullptr and a
  /// `problem` where there is no such device.
  Device find(const std::string& pci_bus_id, std::string& problem) const;
  /// NaN: it does not say.
  GpuSample sample(Device device) const;
  double max_sm_clock_hz(Device device) const;
  double energy_j(Device device) const;  // since the driver was loaded

 private:
  Nvml();
  template <class... Arguments>
  int call(const char* function, Arguments... arguments) const;
  std::string error_text(int result) const;
  GpuHealth health(Device device) const;

  void* library_ = nullptr;
  std::string problem_;
};

/// Samples one GPU through Nvml on a thread of its own, ten times a second. Nothing here throws for want of a driver.
class GpuMonitor {
 public:
  /// pci_bus_id as CUDA gives it: "0000:18:00.0".
  explicit GpuMonitor(const std::string& pci_bus_id);
  ~GpuMonitor();  // tells the thread to end and does not wait for it
  GpuMonitor(const GpuMonitor&) = delete;
  GpuMonitor& operator=(const GpuMonitor&) = delete;

  /// "" when this GPU can be watched, else why not.
  const std::string& unavailable() const { return problem_; }
  /// Begins to sample; forgets what was sampled before.
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
