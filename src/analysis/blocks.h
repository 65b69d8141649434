#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "store/result.h"

namespace harness::analysis {

/// A finished block as evidence: when it ran, and the median of its timed steps.
struct FinishedBlock {
  std::size_t index = 0;  // of Result::blocks
  std::int32_t case_index = 0, round = 0, session = 0;
  double steps_unix_s = 0;  // when its first step began
  double seconds = 0;
};
/// Whether some blocks ran one after another in the same processes, as the sizes of an operation do.
bool shares_processes(const store::Result& result);

/// Whether a block was measured, well or not.
constexpr bool was_tried(const store::ResultBlock& block) {
  return block.status == store::BlockStatus::ok || block.status == store::BlockStatus::failed;
}
/// Whether a block is still to be measured: it was neither measured nor left out, and its case may run. A case can
/// cease to run at any moment and leaves its blocks as they are, so whoever asks how far a sweep is must ask this.
bool will_still_run(const store::Result& result, const store::ResultBlock& block);
/// The first round of which a block is still to be measured; Result::rounds if there is none.
std::int32_t first_open_round(const store::Result& result);

/// In the order of the file, of all cases or of one. Blocks without a usable sample are left out.
std::vector<FinishedBlock> finished_blocks(const store::Result& result, std::optional<std::int32_t> case_index = {});

/// The median timed step of a finished block; nothing if the block did not finish or has no usable sample.
std::optional<double> block_median(const store::Result& result, std::size_t block);

/// Rounds in which some block ran on throttled devices: by a reason that NVML gave, other than the power limit
/// alone, or because its mean clock was more than 5 % below the median of its case's blocks. Ascending.
std::vector<std::int32_t> throttled_rounds(const store::Result& result);

/// How much longer than the median step of its block the slowest timed steps of a case take. Each step counts over the
/// median of its own block, so that a slow block is not counted twice.
struct Tails {
  double p95 = 1, p99 = 1;  // times the median, by the nearest rank
};
/// Nothing below 100 steps: one step in a hundred cannot be seen in fewer.
std::optional<Tails> tails_of(const store::Result& result, std::int32_t case_index);

/// How far a sweep is, by its file.
struct HowFar {
  int rounds_done = 0, rounds = 0;          // rounds of which no block will still run
  std::size_t blocks_done = 0, blocks = 0;  // measured; those and what will still run
  /// Until the last block has ended, if none is left out any more; seconds. Nothing before the first block has ended,
  /// or when nothing is left.
  std::optional<double> remaining_s;
};

/// The remaining time: a block takes as long as blocks did so far (a mean, from one start to the next in a session).
HowFar how_far(const store::Result& result);

}  // namespace harness::analysis
