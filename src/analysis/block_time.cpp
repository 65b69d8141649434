#include "analysis/block_time.h"

#include <algorithm>
#include <cmath>

namespace harness::analysis {
namespace {

double known(double seconds) {
  return std::isfinite(seconds) ? std::max(seconds, 0.0) : 0;
}

double steps_of(const store::Result& result, std::size_t block) {
  double seconds = 0;
  for (const float step : result.step_seconds[block]) seconds += known(step);
  return seconds;
}

}  // namespace

std::optional<BlockTime> time_of_blocks(const store::Result& result) {
  BlockTime time;
  for (std::size_t i = 0; i < result.blocks.size() && i < result.step_seconds.size(); ++i) {
    const store::ResultBlock& block = result.blocks[i];
    if (block.status != store::BlockStatus::ok || !std::isfinite(block.total_s)) continue;
    ++time.blocks;
    // Each is the slowest rank's, so together they can exceed the whole by a little.
    const double build = known(block.build_s), connect = known(block.connect_s), initialize = known(block.initialize_s);
    const double steps = steps_of(result, i);
    time.build += build;
    time.connect += connect;
    time.initialize += initialize;
    time.steps += steps;
    time.start += known(block.setup_s - build - connect - initialize);
    time.end += known(block.total_s - block.setup_s - steps);
    if (i + 1 == result.blocks.size()) continue;
    const store::ResultBlock& next = result.blocks[i + 1];
    if (next.session == block.session) time.between += known(next.start_unix_s - block.start_unix_s - block.total_s);
  }
  if (time.blocks == 0) return std::nullopt;
  return time;
}

}  // namespace harness::analysis
