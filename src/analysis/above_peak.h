#pragma once

#include "analysis/summary.h"

namespace harness::analysis {

/// A clock or a peak may be a little off; what exceeds a limit by a twentieth did something else.
inline constexpr double beyond_doubt = 1.05;

/// More model FLOP/s than the peak allows, so the peak is not the peak, or something else was timed.
inline bool above_peak(const CaseSummary& row) {
  return row.mfu && *row.mfu > beyond_doubt;
}

}  // namespace harness::analysis
