#pragma once

#include <array>
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

/// Where the kernel takes memory for a thread and what it starts: a mode of set_mempolicy(2) and a set of NUMA nodes.
struct MemoryPolicy {
  int mode = 0;                           // 0: the kernel's own, near the CPU that first touches it
  std::array<unsigned long, 16> nodes{};  // bits: 1024 nodes, the most that Linux has
  bool operator==(const MemoryPolicy&) const = default;
};
/// From this NUMA node while it has any.
MemoryPolicy preferring(int numa_node);
/// Read and set the policy of the calling thread. Return "" or why the kernel refuses, as it does in Docker's default
/// sandbox ("operation not permitted").
std::string get_memory_policy(MemoryPolicy& policy);
std::string set_memory_policy(const MemoryPolicy& policy);
/// The kernel's reason with what to do about it, where that is known.
std::string with_advice(const std::string& refusal);
/// "default", "preferred 0", "bind 0-1"; for people.
std::string describe(const MemoryPolicy& policy);

}  // namespace harness::machine
