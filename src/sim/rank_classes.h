#pragma once

#include <set>
#include <span>
#include <utility>
#include <vector>

#include "config/hardware.h"
#include "config/settings.h"
#include "program/program.h"
#include "sim/link_time.h"

namespace harness::sim {

/// Ranks that do the same at the same times, so that one of them stands for all.
struct RankClass {
  int role = 0;
  int first_rank = 0;  // the lowest of them, which represents them
  int ranks = 0;
};

/// The ranks of a job, divided into as few classes as there are different courses of a step. Where every rank of a role
/// has equal devices and links, its roles are the classes. A rank that differs takes those with it that it meets, and
/// those that they meet: the coarsest division in which all ranks of a class have one role and one mark and meet the
/// same classes, found by refining it until nothing changes (colour refinement; Cardon and Crochemore 1982).
class RankClasses {
 public:
  /// `marks[rank]`: different where something differs that decides times, such as the speed of the device; empty: it
  /// nowhere does. `set` must be sound (program::verify()) and outlive the object.
  explicit RankClasses(const program::ProgramSet& set, std::span<const int> marks = {});

  const program::ProgramSet& set() const { return set_; }
  const std::vector<RankClass>& list() const { return list_; }
  int class_of(int rank) const { return class_of_[static_cast<std::size_t>(rank)]; }
  const program::Program& program(int number) const { return set_.roles[list_[number].role]; }
  /// The classes that a rank of this class meets in a group, ascending, its own among them.
  std::vector<int> in_group(int number, program::GroupId group) const;
  int at_peer(int number, const program::Peer& peer) const;

 private:
  const program::ProgramSet& set_;
  std::vector<int> class_of_;  // by rank
  std::vector<RankClass> list_;
};

/// Axis and offset of all that a step sends.
std::set<std::pair<program::Axis, int>> directions_of(const program::ProgramSet& set);

// ---- faults --------------------------------------------------------------------------------------------------------

/// The resources that faults leave to each rank of a job, as shares of what it should have. Empty: all of it,
/// everywhere.
struct Condition {
  std::vector<double> clock;    // of its GPU's multiprocessors: what computes takes longer, what moves memory does not
  std::vector<double> network;  // of its part of its node's rate towards the others

  double clock_of(int rank) const { return clock.empty() ? 1 : clock[rank]; }
  double network_of(int rank) const { return network.empty() ? 1 : network[rank]; }
};

/// The effect of each fault is on what carries a rank's bytes out of its node, and the narrowest place decides. A
/// rank's part is the node's rate by its ranks: each GPU has its adapter, and NCCL's channels carry equal parts over
/// all of them, so the slowest holds up the others (NVIDIA, DGX H100 user guide; nccl, src/graph).
///
/// - slow_link: the rank's part, times the share.
/// - pcie_downgraded: what the standard gives 16 lanes in one direction, times the share: 15.8 GB/s in generation 3,
///   31.5 in 4 (compute capability 8.x), 63 in 5 (9.0 and later), 121 in 6 (10.3) (PCI Express Base Specification).
/// - no_gpudirect: 42 % of the part: 300 of 720 Gbit/s in both directions between two H100 nodes (Imbue,
///   "From bare metal to a 70B model", cluster-health: its limits for ib_write_bw without and with GPUDirect RDMA).
///   NVIDIA/nccl issue 1412 has 33 of 93 GB/s.
/// - acs_on: 56 % of the part, before ACS was set right (NVIDIA/nccl issue 949, A100 with HDR). Nothing to add where
///   GPUDirect is not used: then nothing passes between GPU and adapter.
/// - socket_fallback: the stated rate of a node, by its ranks; RDMA's faults do not matter then.
///
/// Links within a node are NVLink's and are not touched. Throws Error if a fault is on a rank or node that is not
/// there, or if the hardware lacks a number that it needs.
Condition condition_of(const config::Faults& faults, const config::Hardware& hardware, const Network& network);

/// Tells ranks of a role apart, as RankClasses wants it: numbers by rank, different where the condition of their
/// hardware is, or where those stand with whom they communicate. On nodes that are all filled alike, faults alone do.
std::vector<int> marks_of(const program::ProgramSet& set, const Network& network, const Condition& condition);

}  // namespace harness::sim
