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

/// Ranks that do the same at the same times: one of them is simulated for all.
struct RankClass {
  int role = 0;
  int first_rank = 0;  // the lowest of them, which represents the class
  int ranks = 0;
};

/// The ranks of a job, divided into as few classes as a step has different courses. If all ranks of a role have equal
/// devices and links, the roles are the classes. A rank that differs splits off the ranks that it meets, and those that
/// they meet: the coarsest division in which all ranks of a class have one role and one mark and meet the same classes.
/// Found by colour refinement until nothing changes (Cardon and Crochemore 1982).
class RankClasses {
 public:
  /// `marks[rank]`: differs wherever something that decides times does, such as the device's speed; empty: all equal.
  /// `set` must be sound (program::verify()) and outlive the object.
  explicit RankClasses(const program::ProgramSet& set, std::span<const int> marks = {});

  const program::ProgramSet& set() const { return set_; }
  const std::vector<RankClass>& list() const { return list_; }
  int class_of(int rank) const { return class_of_[static_cast<std::size_t>(rank)]; }
  const program::Program& program(int number) const { return set_.roles[list_[number].role]; }
  /// Returns the classes that a rank of this class meets in a group, in ascending order and including its own.
  std::vector<int> in_group(int number, program::GroupId group) const;
  int at_peer(int number, const program::Peer& peer) const;

 private:
  const program::ProgramSet& set_;
  std::vector<int> class_of_;  // by rank
  std::vector<RankClass> list_;
};

/// Returns the axis and offset of every send of a step.
std::set<std::pair<program::Axis, int>> directions_of(const program::ProgramSet& set);

// ---- faults --------------------------------------------------------------------------------------------------------

/// The resources that faults leave to each rank of a job, as shares of the intended ones. Empty: no loss anywhere.
struct Condition {
  std::vector<double> clock;    // its GPU's multiprocessor clock, which slows computation, but not memory traffic
  std::vector<double> network;  // its part of its node's rate to the others

  double clock_of(int rank) const { return clock.empty() ? 1 : clock[rank]; }
  double network_of(int rank) const { return network.empty() ? 1 : network[rank]; }
};

/// Returns the effect of the faults, as docs/simulation.md lists it. Each one limits the path of a rank's bytes out of
/// its node, and the narrowest place decides. Links within a node are NVLink and not affected. Throws Error if a fault
/// names a rank or node that does not exist, or if the hardware lacks a number that it needs.
Condition condition_of(const config::Faults& faults, const config::Hardware& hardware, const Network& network,
                       const config::Calibration& calibration);

/// The links of the ranks that share a sequence.
struct RingLinks {
  bool within_node = true;
  double left = 1;  // the smallest share of its part of the network that any of them has
};
/// `context`: how many ranks share a sequence with `rank`, itself included. They are a part of the data axis, but
/// numbered directly after the tensor axis, as in Megatron-LM.
RingLinks ring_links(program::Layout layout, int context, int rank, const Network& network, const Condition& condition);

/// Returns marks for RankClasses, by rank: different where the condition of the hardware differs, or the placement of
/// the ranks that it communicates with. On nodes that are all filled alike, only faults make a difference. `context`:
/// as in ring_links(); no group of the set stands for these ranks.
std::vector<int> marks_of(const program::ProgramSet& set, const Network& network, const Condition& condition,
                          int context);

}  // namespace harness::sim
