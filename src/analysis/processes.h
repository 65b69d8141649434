#pragma once

#include <optional>

#include "store/result.h"

namespace harness::analysis {

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
