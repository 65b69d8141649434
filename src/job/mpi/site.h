#pragma once

#include <string>
#include <vector>

#include "job/job.h"
#include "job/mpi/members.h"
#include "job/mpi/ranks.h"
#include "machine/cpus.h"
#include "machine/gpus.h"

namespace harness::mpi {

/// Where this rank runs, and the resources there that its worker may use.
struct Site {
  int rank = 0;
  std::vector<int> node_ranks;          // ascending; includes this rank
  std::vector<std::vector<int>> cores;  // of the node that this job may use, each as its logical CPUs
  int usable_cores = 1;                 // of these, by a container's quota
  double memory_bytes = 0;
  std::string host, device;
  machine::GpuView gpus;
};
/// Collective.
Site find_site(Ranks& ranks);
/// Collective: by rank, at rank 0.
std::vector<job::RankPlace> gather_places(Ranks& ranks, const Site& site);

/// A worker's part of its node.
struct Share {
  int local_rank = 0, local_ranks = 1;  // among the ranks of this node that take part
  int threads = 1;
  machine::CpuSet cpus;
  double memory_limit_bytes = 0;
};
/// For a rank that takes part. `threads` 0: the node's cores over its ranks; `memory_limit_bytes` 0: 90 % of the node's
/// memory over its ranks. Ranks get neighbouring cores of their own if there are enough for their threads; otherwise
/// they share all.
Share share_of(const Site& site, const Members& members, int threads, double memory_limit_bytes);

}  // namespace harness::mpi
