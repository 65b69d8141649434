#pragma once

#include <sys/resource.h>

#include <bitset>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "machine/tree.h"

namespace harness::machine {

// Which CPUs a node has, which of them this process may use, and what they do. NaN: the kernel does not tell. `root`
// replaces "/" in tests.

inline constexpr std::size_t cpu_capacity = 8192;
using CpuSet = std::bitset<cpu_capacity>;

/// The logical CPUs this process may run on now.
CpuSet bound_cpus();
/// The logical CPUs it may be bound to: all that its container or allocation allows.
CpuSet allowed_cpus();
/// Binds the calling thread and the processes it starts. A set that is empty or that the kernel refuses has no effect.
void bind_to(const CpuSet& cpus);

/// Each physical core as its logical CPUs, in order; CPUs whose core is unknown count as a core each.
std::vector<std::vector<int>> cores_of(const CpuSet& cpus, const std::filesystem::path& root = "/");

/// A list as the kernel writes it, "0-31,64-95", up to where it cannot be read.
CpuSet cpus_in(std::string_view list);
/// Writes such a list.
std::string list_of(const CpuSet& cpus);

/// "AMD EPYC 9654", "Neoverse-V2 …"; "unknown CPU" if the kernel does not name it.
std::string cpu_model(const std::filesystem::path& root = "/");

/// CPU time since the machine started, summed over the CPUs asked for. Seconds.
struct CpuTimes {
  double busy_s = 0;   // user and kernel, interrupts included
  double steal_s = 0;  // wanted, but given to other guests of the host
  double all_s = 0;    // busy, stolen, idle
};
/// NaN unless /proc/stat has a line for every CPU of the set, and for one at least.
CpuTimes cpu_times_now(const CpuSet& cpus, const std::filesystem::path& root = "/");
/// How far busy_s of so many CPUs over this time may be off: the kernel gives each tick to what runs when the tick
/// comes. Two standard deviations of a CPU that is busy half of the time, the worst case.
double busy_uncertainty_s(int cpus, double wall_s);

/// User and system time together. Seconds.
double cpu_seconds(const rusage& used);

// The resources of a node that a container's control groups (Linux, both versions) leave to it.

/// The smallest limit that the groups of this process and those above them set.
struct GroupLimit {
  Access access = Access::absent;  // absent: the kernel has no control groups; unreadable: nothing tells of them
  double value = 0;                // 0: none is set
  std::string why = {};            // when unreadable
};
GroupLimit cpu_quota(const Tree& tree);     // in CPUs
GroupLimit memory_limit(const Tree& tree);  // in bytes

/// `cores` limited by the quota of this process. `root` replaces "/" in tests.
int limited_by_quota(int cores, const std::filesystem::path& root = "/");
/// Memory of the machine or of this process's container, whichever is smaller. Bytes.
double memory_bytes(const std::filesystem::path& root = "/");

/// The CPUs near a PCI device, by its address in any case ("0000:1B:00.0"); none where the kernel does not tell, as in
/// many virtual machines.
CpuSet cpus_near(const std::string& pci_bus_id, const std::filesystem::path& root = "/");

}  // namespace harness::machine
