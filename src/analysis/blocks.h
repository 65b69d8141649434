#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>
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

/// The timed steps of all finished blocks of a case, each over the median of its block: a slow block is not counted
/// twice. A step takes as long as its slowest rank. Ascending.
std::vector<double> steps_over_median(const store::Result& result, std::int32_t case_index);

/// How much longer than the median step of its block the slowest steps of a case take.
struct Tails {
  double p95 = 1, p99 = 1;  // times the median, by the nearest rank
};
/// Nothing below 100 steps: one step in a hundred cannot be seen in fewer.
std::optional<Tails> tails_of(const store::Result& result, std::int32_t case_index);

/// Where the time of the finished blocks of a sweep went, in seconds, all of them together. The parts add up to the
/// time from each block's start to the next one's.
struct BlockTime {
  int blocks = 0;
  double start = 0;       // the workers start and read their order; blocks that share workers: the order alone
  double build = 0;       // the Program and its memory
  double connect = 0;     // addresses are exchanged, connections made
  double initialize = 0;  // first values, and graphs where there are some
  double steps = 0;       // warm-up and timed steps
  double end = 0;         // the check, the samples on their way, the workers' end
  double between = 0;     // until the next block of the session begins: writing the file, the untimed block that a
                          // shared process begins with
};
struct BlockTimePart {
  std::string_view name;
  double BlockTime::*seconds;
};
inline constexpr std::array<BlockTimePart, 7> block_time_parts{{{"starting the workers", &BlockTime::start},
                                                                {"building the Program", &BlockTime::build},
                                                                {"connecting", &BlockTime::connect},
                                                                {"first values", &BlockTime::initialize},
                                                                {"warm-up and timed steps", &BlockTime::steps},
                                                                {"check and end", &BlockTime::end},
                                                                {"between blocks", &BlockTime::between}}};

/// Nothing in files that do not say each part, and without a finished block.
std::optional<BlockTime> time_of_blocks(const store::Result& result);

/// How far a sweep is, by its file.
struct HowFar {
  int rounds_done = 0, rounds = 0;          // rounds of which no block will still run
  std::size_t blocks_done = 0, blocks = 0;  // measured; those and what will still run
  /// Until the last block has ended, if none is left out any more; seconds. Nothing before the first block has ended,
  /// or when nothing is left.
  std::optional<double> remaining_s;
};

/// The remaining time is by case: a block takes as long as the case's blocks did so far (a mean, from one start to the
/// next), or as the mean of all where the case has none.
HowFar how_far(const store::Result& result);

/// How many processes (of each rank) measured the blocks of a sweep that shares them, and what one does to all of its
/// blocks.
struct Processes {
  int processes = 0;  // that measured a block
  int shared = 0;     // that measured several
  /// Standard deviation of log seconds from process to process, which all blocks of a process have in common: the
  /// placement of its memory, its routes, and the time at which it ran. 0 where the blocks' own scatter explains all.
  /// Nothing with fewer than three shared processes.
  std::optional<double> deviation;
};

/// Nothing where every block had a process of its own.
std::optional<Processes> find_processes(const store::Result& result);

}  // namespace harness::analysis
