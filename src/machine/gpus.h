#pragma once

#include <filesystem>
#include <string>
#include <vector>

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

}  // namespace harness::machine
