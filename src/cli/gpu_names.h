#pragma once

#include <string>
#include <vector>

namespace harness::cli {

struct Gpu {
  std::string name;  // as nvidia-smi gives it
  double memory_bytes = 0;
};

/// The GPUs of this machine as NVML (libnvidia-ml.so.1, which comes with the driver) lists them, whatever
/// CUDA_VISIBLE_DEVICES hides; empty without a driver. Opens no CUDA context.
std::vector<Gpu> gpus_of_driver();

}  // namespace harness::cli
