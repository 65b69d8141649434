#pragma once

#include <array>
#include <chrono>
#include <cstdint>
#include <span>

#include "job/mpi/members.h"
#include "job/mpi/site.h"
#include "machine/conditions.h"
#include "machine/cpus.h"

namespace harness::mpi {

/// What one supervisor tells rank 0 about a block. Plain bytes: gathered over MPI. NaN: not known.
struct NodeReport {
  static constexpr double nan = machine::Conditions::nan;
  std::int32_t node = 0;     // its lowest rank
  std::int32_t cores = 0;    // of the node that this job may use
  std::int32_t cpus = 0;     // of these cores
  double own_s = 0;          // CPU time of this supervisor and its worker, everything they started included
  double wall_s = 0;         // that the node's first supervisor watched; 0: not this one, or no worker runs there
  double busy_s = nan;       // of the CPUs together
  double steal_share = nan;  // of their time
  double load = nan;         // of the last minute
  double clock_hz = nan;     // mean over the CPUs
  std::array<char, 64> host{};
};

/// Watches a node's CPUs during a block, from its construction to report(). Only the node's first supervisor reads the
/// kernel's files, before the block's workers start and after they have ended. CPUs that the job may not use are no
/// concern; under a CPU quota the CPUs' times are not this job's, so foreign cores are not known there.
class NodeWatch {
 public:
  NodeWatch(const Site& site, const Members& members);
  /// worker_cpu_s: CPU time of this supervisor's worker, which has ended; 0: it had none; NaN: not known.
  NodeReport report(double worker_cpu_s) const;

 private:
  const Site& site_;
  bool watches_ = false;
  machine::CpuSet cpus_;
  std::chrono::steady_clock::time_point start_;
  double supervisor_s_ = 0;
  machine::CpuTimes times_;
};

/// Of each figure the worst node's. What a node's CPUs did beyond the sum of its ranks' own_s, and beyond what ticks of
/// the kernel's clock may be off (machine::busy_uncertainty_s), is foreign, never below 0 nor above its cores; a CPU of
/// a core that has two counts half a core. Reports come from every rank.
machine::Conditions worst_of(std::span<const NodeReport> reports);

}  // namespace harness::mpi
