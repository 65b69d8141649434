#pragma once

#include <set>
#include <utility>
#include <vector>

#include "sim/faults.h"

namespace harness::sim {

/// Axis and offset of all that a step sends.
std::set<std::pair<program::Axis, int>> directions_of(const program::ProgramSet& set);

/// Tells ranks of a role apart, as RankClasses wants it: numbers by rank, different where the condition of their
/// hardware is, or where those stand with whom they communicate. On nodes that are all filled alike, faults alone do.
std::vector<int> marks_of(const program::ProgramSet& set, const Network& network, const Condition& condition);

}  // namespace harness::sim
