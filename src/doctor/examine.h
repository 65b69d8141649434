#pragma once

#include <string>
#include <vector>

#include "doctor/facts.h"
#include "job/job.h"

namespace harness::doctor {

/// How long a node may take to tell its facts; what it has by then counts.
inline constexpr double node_limit_s = 5;
/// The limit at the start of a sweep, which waits for it.
inline constexpr double limit_in_a_sweep_s = 2;

/// How examine() looks.
struct HowToExamine {
  std::string sysroot = "/";
  double limit_s = node_limit_s;
  bool asks_nvml = true;  // where the root is "/"; asking may wake the driver up, which takes seconds
};

/// Rank 0: the facts of all nodes, by their first rank. The lowest rank of each node tells the node's, every rank its
/// own. `sysroot` replaces "/"; with "{rank}" in it each rank looks at a folder of its own, and ranks whose folders
/// name the same host are one node. Throws Error with exit code 3 where nothing could be read of any node.
std::vector<Node> examine(job::Job& job, const HowToExamine& how);

/// A rank's answer to examine(): the `job::Answer` that a job is given.
std::string answer(int rank, const std::string& question);

}  // namespace harness::doctor
