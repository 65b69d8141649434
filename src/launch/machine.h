#pragma once

#include <sys/resource.h>

#include <bitset>
#include <filesystem>
#include <string>
#include <vector>

namespace harness::launch {

inline constexpr std::size_t cpu_capacity = 8192;
using CpuSet = std::bitset<cpu_capacity>;

/// The logical CPUs this process may run on now.
CpuSet bound_cpus();
/// The logical CPUs it may be bound to: all that its container or allocation allows.
CpuSet allowed_cpus();
/// Binds the calling thread and the processes it starts. A set that is empty or that the kernel refuses has no effect.
void bind_to(const CpuSet& cpus);

/// Each physical core as its logical CPUs, in order; CPUs whose core is unknown count as a core each.
std::vector<std::vector<int>> cores_of(const CpuSet& cpus);
/// `cores` limited by a container's CPU quota (Linux control groups, both versions).
int limited_by_quota(int cores);

/// Memory of the machine or of its container, whichever is smaller. Bytes.
double memory_bytes();
/// "AMD EPYC 9654", "Neoverse-V2 …"; "unknown CPU" if the kernel does not name it.
std::string cpu_model();
std::string host_name();
/// User and system time together. Seconds.
double cpu_seconds(const rusage& used);

/// The smallest limit that the control groups of a process set, for "memory.max" (version 2) or
/// "memory.limit_in_bytes" (version 1); 0 when there is none. `cgroup_text` is /proc/self/cgroup's content.
double smallest_memory_limit(const std::string& cgroup_text, const std::filesystem::path& mount);
/// The smallest CPU quota, in CPUs; 0 if there is none.
double smallest_cpu_quota(const std::string& cgroup_text, const std::filesystem::path& mount);

}  // namespace harness::launch
