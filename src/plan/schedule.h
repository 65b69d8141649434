#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "plan/plan.h"

namespace harness::plan {

/// A case that is to be scheduled.
struct Entrant {
  std::size_t case_index = 0;
  double share = 1;  // of the rounds that it takes part in, the first among them and the others evenly spread
};

/// Cases whose blocks of a round follow each other, in one process.
using EntrantSet = std::vector<Entrant>;

/// The order of blocks: `rounds` rounds, each a sequence of `sets`, each a sequence of its cases, in which every case
/// stands once, or not at all where its share says so. Over each run of n = number of sets rounds every set stands once
/// at every place, so that drift within a round cannot favour one. When n is even every set also follows every other
/// exactly once in them, so that what it leaves behind (heat, caches of the file system) falls on all alike. The same
/// holds for the cases within their set. Depends on the arguments alone, on every machine.
std::vector<Slot> make_schedule(std::span<const EntrantSet> sets, int rounds, std::uint64_t seed);

}  // namespace harness::plan
