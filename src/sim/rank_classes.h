#pragma once

#include <set>
#include <span>
#include <utility>
#include <vector>

#include "program/program.h"
#include "sim/faults.h"

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

/// Tells ranks of a role apart, as RankClasses wants it: numbers by rank, different where the condition of their
/// hardware is, or where those stand with whom they communicate. On nodes that are all filled alike, faults alone do.
std::vector<int> marks_of(const program::ProgramSet& set, const Network& network, const Condition& condition);

}  // namespace harness::sim
