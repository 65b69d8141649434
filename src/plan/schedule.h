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

/// The order of blocks: `rounds` rounds in each of which every one of `entrants` stands once, or not at all where its
/// share says so. Over each run of n = number
/// of cases rounds every case stands once at every position, so that drift within a round cannot favour one. When n is
/// even every case also follows every other exactly once in them, so that what a case leaves behind (heat, caches of
/// the file system) falls on all alike. Depends on the arguments alone, on every machine.
std::vector<Slot> make_schedule(std::span<const Entrant> entrants, int rounds, std::uint64_t seed);

}  // namespace harness::plan
