#pragma once

#include <filesystem>
#include <string>

#include "machine/cpus.h"

namespace harness::machine {

// Which CPUs and which memory are near each other and near a device, as /sys tells. `root` replaces "/" in tests.

/// The NUMA node of a CPU; -1: the kernel does not tell.
int numa_node_of(int cpu, const std::filesystem::path& root = "/");

/// CPUs and memory near a PCI device, by its address in any case ("0000:1B:00.0").
struct Surroundings {
  CpuSet cpus;         // none: not known
  int numa_node = -1;  // -1: not known, as in many virtual machines
};
Surroundings surroundings_of(const std::string& pci_bus_id, const std::filesystem::path& root = "/");

/// A GPU's part of the CPUs near it: whole cores, divided evenly among all of NVIDIA's GPUs that are near the same
/// CPUs, in the order of their addresses. So the parts are the same whichever GPUs a process sees, and disjoint. Of
/// `cpus` only; none where it is not known what is near, or where there are more GPUs than cores.
CpuSet part_of_gpu(const std::string& pci_bus_id, const CpuSet& cpus, const std::filesystem::path& root = "/");

}  // namespace harness::machine
