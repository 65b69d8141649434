#pragma once

#include <filesystem>
#include <string>

#include "machine/tree.h"

namespace harness::machine {

// The resources of a node that a container's control groups (Linux, both versions) leave to it.

/// The smallest limit that the groups of this process and those above them set.
struct GroupLimit {
  Access access = Access::absent;  // absent: the kernel has no control groups
  double value = 0;                // 0: none is set
  std::string why = {};            // when unreadable
};
GroupLimit cpu_quota(const Tree& tree);     // in CPUs
GroupLimit memory_limit(const Tree& tree);  // in bytes

/// `cores` limited by the quota of this process. `root` replaces "/" in tests.
int limited_by_quota(int cores, const std::filesystem::path& root = "/");
/// Memory of the machine or of this process's container, whichever is smaller. Bytes.
double memory_bytes(const std::filesystem::path& root = "/");

}  // namespace harness::machine
