#pragma once

#include <array>
#include <optional>
#include <string_view>

#include "store/result.h"

namespace harness::analysis {

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

/// Nothing in files of versions that did not measure it, and without a finished block.
std::optional<BlockTime> time_of_blocks(const store::Result& result);

}  // namespace harness::analysis
