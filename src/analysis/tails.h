#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "store/result.h"

namespace harness::analysis {

/// The timed steps of all finished blocks of a case, each over the median of its block: a slow block is not counted
/// twice. A step takes as long as its slowest rank. Ascending.
std::vector<double> steps_over_median(const store::Result& result, std::int32_t case_index);

/// How much longer than the median step of its block the slowest steps of a case take.
struct Tails {
  double p95 = 1, p99 = 1;  // times the median, by the nearest rank
  std::size_t steps = 0;
};
inline constexpr std::size_t least_tail_steps = 100;
/// Nothing below least_tail_steps: one step in a hundred cannot be seen in fewer.
std::optional<Tails> tails_of(const store::Result& result, std::int32_t case_index);

}  // namespace harness::analysis
