#pragma once

#include <cstddef>
#include <optional>

#include "store/result.h"

namespace harness::analysis {

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

}  // namespace harness::analysis
