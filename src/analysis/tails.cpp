#include "analysis/tails.h"

#include <algorithm>
#include <cmath>

#include "analysis/blocks.h"

namespace harness::analysis {

std::vector<double> steps_over_median(const store::Result& result, std::int32_t case_index) {
  std::vector<double> steps;
  for (const FinishedBlock& block : finished_blocks(result, case_index)) {
    for (const float seconds : result.timed_seconds(block.index)) {
      if (seconds > 0 && std::isfinite(seconds)) steps.push_back(seconds / block.seconds);
    }
  }
  std::ranges::sort(steps);
  return steps;
}

std::optional<Tails> tails_of(const store::Result& result, std::int32_t case_index) {
  const std::vector<double> steps = steps_over_median(result, case_index);
  if (steps.size() < least_tail_steps) return std::nullopt;
  // The smallest value that this percentage of all steps does not exceed.
  const auto percentile = [&](std::size_t percent) { return steps[(steps.size() * percent + 99) / 100 - 1]; };
  return Tails{percentile(95), percentile(99), steps.size()};
}

}  // namespace harness::analysis
