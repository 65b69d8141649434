#pragma once

#include <vector>

#include "program/program.h"

namespace harness::explain {

/// Nodes, or ranks, whose narrow network the same ranks would feel: those that communicate across nodes with them, or
/// together with somebody on them. By the step, these places cannot be told from each other.
struct Reach {
  std::vector<int> places;     // nodes or ranks, ascending
  std::vector<bool> affected;  // by rank
};

/// The nodes of a job, and its ranks. The all-reduce of all ranks that ends a step tells nothing and is left out.
/// Places that nobody would feel are left out, too.
std::vector<Reach> reach_of_nodes(const program::ProgramSet& set, const std::vector<int>& node_of);
std::vector<Reach> reach_of_ranks(const program::ProgramSet& set, const std::vector<int>& node_of);

/// The places whose reach fits best what ranks communicate longer, by least squares; nullptr if there is none.
const Reach* best_fit(const std::vector<Reach>& reaches, const std::vector<double>& excess_s);

}  // namespace harness::explain
