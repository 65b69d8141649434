#pragma once

#include <string>
#include <vector>

#include "job/job.h"
#include "job/mpi/ranks.h"
#include "machine/gpus.h"

namespace harness::mpi {

/// Where this rank runs, and the resources there that its worker may use.
struct Site {
  int rank = 0;
  std::vector<int> node_ranks;          // ascending; includes this rank
  std::vector<std::vector<int>> cores;  // of the node that this job may use, each as its logical CPUs
  std::vector<int> numa_nodes;          // of each core; -1: not known
  int usable_cores = 1;                 // of these, by a container's quota
  double memory_bytes = 0;
  std::string host, device;
  machine::GpuView gpus;
};
/// The GPUs that the launcher lets this process see.
machine::GpuView visible_gpus();
/// Collective.
Site find_site(Ranks& ranks);
/// Collective: by rank, at rank 0.
std::vector<job::RankPlace> gather_places(Ranks& ranks, const Site& site);

}  // namespace harness::mpi
