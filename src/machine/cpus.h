#pragma once

#include <sys/resource.h>

#include <bitset>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "machine/tree.h"

namespace harness::machine {

// A node's CPUs, those that this process may use, and their load. NaN: not reported by the kernel. `root` replaces "/"
// in tests.

inline constexpr std::size_t cpu_capacity = 8192;
using CpuSet = std::bitset<cpu_capacity>;

/// The logical CPUs this process may run on now.
CpuSet bound_cpus();
/// The logical CPUs it may be bound to: all that its container or allocation allows.
CpuSet allowed_cpus();
/// Binds the calling thread and the processes it starts. A set that is empty or that the kernel refuses has no effect.
void bind_to(const CpuSet& cpus);

/// Groups logical CPUs by physical core, in order; a CPU of unknown core counts as a core.
std::vector<std::vector<int>> cores_of(const CpuSet& cpus, const std::filesystem::path& root = "/");

/// Parses a list as the kernel writes it, "0-31,64-95", up to the first error.
CpuSet cpus_in(std::string_view list);
/// Writes such a list.
std::string list_of(const CpuSet& cpus);

/// "AMD EPYC 9654", "Neoverse-V2 …"; "unknown CPU" if the kernel does not name it.
std::string cpu_model(const std::filesystem::path& root = "/");

/// CPU time since boot, summed over the requested CPUs. Seconds.
struct CpuTimes {
  double busy_s = 0;   // user and kernel, interrupts included
  double steal_s = 0;  // wanted, but given to other guests of the host
  double all_s = 0;    // busy, stolen, idle
};
/// Returns NaN unless the set is not empty and /proc/stat has a line for every CPU of it.
CpuTimes cpu_times_now(const CpuSet& cpus, const std::filesystem::path& root = "/");
/// Returns the sampling error of busy_s for this many CPUs and this time: the kernel charges each tick to whatever runs
/// when it fires. Two standard deviations for CPUs that are busy half of the time, the worst case.
double busy_uncertainty_s(int cpus, double wall_s);

/// User and system time together. Seconds.
double cpu_seconds(const rusage& used);

// The limits that control groups (Linux, both versions) set for a container.

/// The smallest limit among this process's control groups and their ancestors.
struct GroupLimit {
  Access access = Access::absent;  // absent: no control groups in the kernel; unreadable: their files are hidden
  double value = 0;                // 0: none is set
  std::string why = {};            // when unreadable
};
GroupLimit cpu_quota(const Tree& tree);     // in CPUs
GroupLimit memory_limit(const Tree& tree);  // in bytes

/// `cores` limited by the quota of this process. `root` replaces "/" in tests.
int limited_by_quota(int cores, const std::filesystem::path& root = "/");
/// Memory of the machine or of this process's container, whichever is smaller. Bytes.
double memory_bytes(const std::filesystem::path& root = "/");

/// Returns the CPUs near a PCI device, given its address in upper or lower case ("0000:1B:00.0"); none if the kernel
/// does not report them, as in many virtual machines.
CpuSet cpus_near(const std::string& pci_bus_id, const std::filesystem::path& root = "/");

}  // namespace harness::machine
