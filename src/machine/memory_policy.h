#pragma once

#include <array>
#include <string>

namespace harness::machine {

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
