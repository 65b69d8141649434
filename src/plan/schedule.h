#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "plan/plan.h"

namespace harness::plan {

/// The order of blocks: `rounds` rounds in each of which every one of `cases` stands once. Over each run of n = number
/// of cases rounds every case stands once at every position, so that drift within a round cannot favour one. When n is
/// even every case also follows every other exactly once in them, so that what a case leaves behind (heat, caches of
/// the file system) falls on all alike. Depends on the arguments alone, on every machine.
std::vector<Slot> make_schedule(std::span<const std::size_t> cases, int rounds, std::uint64_t seed);

}  // namespace harness::plan
