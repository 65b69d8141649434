#pragma once

#include <string>
#include <vector>

#include "machine/gpu_health.h"
#include "machine/gpu_statistics.h"

namespace harness::machine {

/// A GPU as the driver lists it.
struct Gpu {
  std::string name;  // as nvidia-smi gives it
  double memory_bytes = 0;
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
  /// All of this machine, whatever CUDA_VISIBLE_DEVICES hides; empty when unavailable.
  std::vector<Gpu> gpus() const;
  /// State and settings of all of them. A driver in trouble may take long.
  GpuReport report() const;

  // Only when it is available:

  /// pci_bus_id as CUDA gives it ("0000:18:00.0"): NVML numbers devices otherwise than CUDA does. nullptr and a
  /// `problem` where there is no such device.
  Device find(const std::string& pci_bus_id, std::string& problem) const;
  /// NaN: it does not say.
  GpuSample sample(Device device) const;
  double max_sm_clock_hz(Device device) const;
  double max_pcie_generation(Device device) const;  // that device and slot both have
  double energy_j(Device device) const;             // since the driver was loaded

 private:
  Nvml();
  template <class... Arguments>
  int call(const char* function, Arguments... arguments) const;
  std::string error_text(int result) const;
  GpuHealth health(Device device) const;

  void* library_ = nullptr;
  std::string problem_;
};

}  // namespace harness::machine
