#pragma once

#include <filesystem>
#include <string>

namespace harness::machine {

// What a container's control groups (Linux, both versions) leave of a node. `root` replaces "/" in tests.

/// The smallest limit that the control groups of a process set, for "memory.max" (version 2) or
/// "memory.limit_in_bytes" (version 1); 0 when there is none. `cgroup_text` is /proc/self/cgroup's content.
double smallest_memory_limit(const std::string& cgroup_text, const std::filesystem::path& mount);
/// The smallest CPU quota, in CPUs; 0 if there is none.
double smallest_cpu_quota(const std::string& cgroup_text, const std::filesystem::path& mount);

/// `cores` limited by the quota of this process.
int limited_by_quota(int cores, const std::filesystem::path& root = "/");
/// Memory of the machine or of this process's container, whichever is smaller. Bytes.
double memory_bytes(const std::filesystem::path& root = "/");

}  // namespace harness::machine
