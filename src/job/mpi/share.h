#pragma once

#include <string>
#include <vector>

#include "job/job.h"
#include "job/mpi/members.h"
#include "job/mpi/site.h"
#include "machine/cpus.h"
#include "machine/numa.h"

namespace harness::mpi {

/// A worker's part of its node.
struct Share {
  int local_rank = 0, local_ranks = 1;  // among the ranks of this node that take part
  int threads = 1;
  machine::CpuSet cpus;
  int numa_node = -1;  // whose memory it takes first; -1: as the kernel does by itself
  double memory_limit_bytes = 0;
  std::vector<std::string> warnings;  // of what was asked for and cannot be; each with a remedy
};
/// For a rank that takes part. `threads` auto: the node's cores over its ranks; no memory limit: 90 % of the node's
/// memory over its ranks. Where ranks are GPUs a share has all CPUs and no memory limit of its own: the worker binds
/// itself when it knows its GPU, and what fits on a device is not the host's limit. Elsewhere `host_binding` says which
/// CPUs. With auto, ranks get neighbouring cores of their own if there are enough for their threads; otherwise they
/// share all.
Share share_of(const Site& site, const Members& members, const job::BlockRequest& request);

/// As long as it lives, the calling thread has the CPUs and takes the memory of a share, and so has what it starts.
class InPlace {
 public:
  /// What the kernel refuses is added to the share's warnings.
  explicit InPlace(Share& share);
  ~InPlace();
  InPlace(const InPlace&) = delete;
  InPlace& operator=(const InPlace&) = delete;

 private:
  machine::CpuSet cpus_before_;
  machine::MemoryPolicy policy_before_;
  bool policy_changed_ = false;
};

}  // namespace harness::mpi
