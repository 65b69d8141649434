#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "store/result.h"

namespace harness::analysis {

/// An interval of a profiled step as it is drawn.
struct DrawnInterval {
  const store::ResultInterval* row = nullptr;
  /// On the clock that all ranks of the step share.
  double start_s = 0, end_s = 0;
  /// The stream, for sends and receives with their direction: "pipeline send". Intervals of one track of a rank do not
  /// overlap: those that would go to "STREAM (2)", "STREAM (3)" …
  std::string track;
  std::string what;  // of the row, whole where the file had to cut it
};

struct DrawnStep {
  std::vector<DrawnInterval> intervals;  // by rank, then by start
  /// The file counts the times of each rank from the start of its own step. The closing all-reduce ends the step on all
  /// ranks at once, so its ends are laid on each other. False: some rank has none, and the times are the file's.
  bool one_clock = false;
};

/// The profiled step of a case, without rows whose times are not finite or run backwards; empty if there is none.
DrawnStep drawn_step(const store::Result& result, std::int32_t case_index);

}  // namespace harness::analysis
