#pragma once

#include <filesystem>
#include <string>
#include <vector>

namespace harness {

/// The GPUs of a node as the operating system lists them: nothing here opens a device or loads the driver.
struct GpuView {
  int on_node = -1;                // whatever a rank may see of them; -1: cannot be told
  int count = -1;                  // that this rank may see; -1: cannot be told
  std::vector<std::string> names;  // of these: "3", or "GPU-8f1c…" where the launcher says so; empty if not known
};

/// What the launcher told this process of its GPUs, by environment variable.
struct GpuEnvironment {
  bool restricted = false;  // CUDA_VISIBLE_DEVICES is set
  std::string visible;      // its value
  std::string own_task;     // set where every task may number its GPUs from 0 (Slurm's device groups); else ""
};
GpuEnvironment gpu_environment();

/// `root` stands for "/" (tests give a folder).
GpuView find_gpus(const GpuEnvironment& environment, const std::filesystem::path& root = "/");

}  // namespace harness
