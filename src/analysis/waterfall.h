#pragma once

#include <optional>
#include <string>
#include <vector>

#include "analysis/breakdown.h"
#include "analysis/summary.h"
#include "store/result.h"

namespace harness::analysis {

/// One step down from the peak (points > 0 are lost) or, rarely, up.
struct WaterfallBar {
  std::string name;              // "matrix products below peak", "waiting for slower ranks"
  std::optional<Part> part;      // of the breakdown it comes from; none: "profiled step differs from the timed ones"
  double points = 0;             // share of the peak: 0.12 is 12 points of MFU
  double seconds = 0;            // what the part took, mean over ranks
  std::optional<double> roof_s;  // what it would take at the machine's limit; absent: the limit is not known
  std::string roof;  // what that limit is: "peak FLOP/s", "memory bandwidth", "stated links, hidden or not" …
};

/// From 100 % of the peak to the measured MFU: 1 = mfu + sum of points, exactly.
struct Waterfall {
  std::int32_t case_index = 0;
  double mfu = 0;
  double step_s = 0;                      // timed: what the MFU is of
  double profiled_step_s = 0;             // what the bars are of
  double ideal_s = 0;                     // the model's FLOP at peak
  std::optional<double> gpu_utilisation;  // as NVML reports it, to show beside MFU
  std::vector<WaterfallBar> bars;         // in this order from the top; absent parts have none
};

/// Nothing without a peak, a timeline or a finished block.
std::optional<Waterfall> waterfall(const store::Result& result, const CaseSummary& summary,
                                   const CaseBreakdown& breakdown);

}  // namespace harness::analysis
