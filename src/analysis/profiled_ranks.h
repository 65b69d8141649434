#pragma once

#include <cstdint>
#include <vector>

#include "store/result.h"

namespace harness {

/// How late a rank was in the profiled steps: its own time (computing and idle) beyond the median of those that do the
/// same.
struct Late {
  std::int32_t cases = 0, late_cases = 0;
  std::int32_t among_several = 0, flagrant_cases = 0;  // of cases with others to agree with each other
  double expected = 0;  // sum over cases of the chance to be the latest of those that do the same
  double late_s = 0, share = 0, compute_s = 0, idle_s = 0;  // sums over cases
};

/// By rank; `cases` is how many profiled steps told.
std::vector<Late> late_in_profiled_steps(const Result& result, std::int32_t& cases);

/// Late often enough, and not by chance or not by a little; of so many ranks.
bool is_straggler(const Late& late, std::int32_t ranks);

inline constexpr double least_late_share = 0.02;  // of the step: less is nobody's fault
inline constexpr double late_often = 2.0 / 3;     // of the steps looked at

}  // namespace harness
