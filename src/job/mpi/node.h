#pragma once

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <numeric>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "job/job.h"
#include "job/messages.h"
#include "job/mpi/ranks.h"
#include "machine/conditions.h"
#include "machine/cpus.h"
#include "machine/gpus.h"

namespace harness::mpi {

/// The ranks of the job that have a worker, in the order in which a layout numbers them.
class Members {
 public:
  /// `ranks`: of the job, ascending; empty: the first `count`.
  Members(std::vector<int> ranks, int count) : ranks_(std::move(ranks)) {
    if (!ranks_.empty()) return;
    ranks_.resize(static_cast<std::size_t>(count));
    std::iota(ranks_.begin(), ranks_.end(), 0);
  }
  explicit Members(int count) : Members({}, count) {}

  int size() const { return static_cast<int>(ranks_.size()); }
  /// The rank of the job that has this number in the layout.
  int rank_of(int number) const { return ranks_.at(static_cast<std::size_t>(number)); }
  /// The number that a rank of the job has in the layout; nothing if it has no worker.
  std::optional<int> number_of(int rank) const {
    const auto at = std::ranges::lower_bound(ranks_, rank);
    if (at == ranks_.end() || *at != rank) return std::nullopt;
    return static_cast<int>(at - ranks_.begin());
  }
  bool contains(int rank) const { return number_of(rank).has_value(); }

 private:
  std::vector<int> ranks_;
};

/// The place of this rank and the resources there that its worker may use.
struct Site {
  job::RankPlace place;                 // cores: limited by a container's quota; node: set by gather_places()
  std::vector<int> node_ranks;          // ascending; includes this rank
  std::vector<std::vector<int>> cores;  // the node's cores that this job may use, each as its logical CPUs
};
/// Collective.
Site find_site(Ranks& ranks);
/// Collective: returns the places of all ranks, by rank, on rank 0; nothing elsewhere.
std::vector<job::RankPlace> gather_places(Ranks& ranks, const Site& site);

/// A worker's part of its node.
struct Share {
  int local_rank = 0, local_ranks = 1;  // among the ranks of this node that take part
  int threads = 1;
  machine::CpuSet cpus;
  double memory_limit_bytes = 0;
};
/// Returns the share of a rank that takes part. Defaults: `threads` is the node's cores per rank, less those of its
/// data loader; the memory limit is 90 % of the node's memory per rank. If ranks are GPUs, a share has all CPUs and no
/// default memory limit: the worker binds itself once it knows its GPU, and device memory is not the host's to limit.
/// Other ranks get neighbouring cores of their own if there are enough for their threads, else they share all.
Share share_of(const Site& site, const Members& members, const job::BlockRequest& request);

/// Binds the calling thread, and the processes it starts, to the CPUs of a share for its lifetime.
class InPlace {
 public:
  explicit InPlace(const Share& share) : cpus_before_(machine::bound_cpus()) { machine::bind_to(share.cpus); }
  ~InPlace() { machine::bind_to(cpus_before_); }
  InPlace(const InPlace&) = delete;
  InPlace& operator=(const InPlace&) = delete;

 private:
  machine::CpuSet cpus_before_;
};

/// The report of one supervisor to rank 0 about its node's CPUs during a block. NaN: not known.
struct NodeReport {
  static constexpr double nan = machine::Conditions::nan;
  std::int32_t node = 0;     // its lowest rank
  std::int32_t cores = 0;    // of the node that this job may use
  std::int32_t cpus = 0;     // of these cores
  double own_s = 0;          // CPU time of this supervisor and its worker, everything they started included
  double wall_s = 0;         // watched by the node's first supervisor; 0 on others, or if no worker runs there
  double busy_s = nan;       // of the CPUs together
  double steal_share = nan;  // of their time
  std::string host;
};
template <job::MessageOf<NodeReport> M, class Each>
void each_field(M& m, Each& each) {
  each(m.node, m.cores, m.cpus, m.own_s, m.wall_s, m.busy_s, m.steal_share, m.host);
}

/// Watches a node's CPUs during a block, from construction to report(). Only the node's first supervisor reads the
/// kernel's files, before its worker gets the block and after it is done with it. CPUs that the job may not use are
/// ignored; under a CPU quota, CPU times are not this job's alone, so foreign cores are unknown.
class NodeWatch {
 public:
  NodeWatch(const Site& site, const Members& members);
  /// worker_cpu_s: CPU time of this supervisor's worker in the block; 0: it had none; NaN: not known.
  NodeReport report(double worker_cpu_s) const;

 private:
  const Site& site_;
  bool watches_ = false;
  machine::CpuSet cpus_;
  std::chrono::steady_clock::time_point start_;
  double supervisor_s_ = 0;
  machine::CpuTimes times_;
};

/// Takes each figure from the node where it is worst. CPU time of a node beyond the sum of its ranks' own_s, and beyond
/// the resolution of the kernel's clock ticks (machine::busy_uncertainty_s), counts as foreign, never below 0 nor above
/// its cores; on cores with two CPUs, a CPU counts as half a core. `reports`: one from every rank.
machine::Conditions worst_of(std::span<const NodeReport> reports);

}  // namespace harness::mpi
