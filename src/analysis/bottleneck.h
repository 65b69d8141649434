#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "analysis/breakdown.h"
#include "analysis/stragglers.h"
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
  double step_s = 0;                      // what the MFU is of
  bool timed = false;                     // step_s is of timed steps; no: of the profiled one, for no block finished
  double ideal_s = 0;                     // the model's FLOP at peak
  std::optional<double> gpu_utilisation;  // as NVML reports it, to show beside MFU
  std::vector<WaterfallBar> bars;         // in this order from the top; absent parts have none
};

/// Nothing without a peak or a timeline.
std::optional<Waterfall> waterfall(const store::Result& result, const CaseSummary& summary,
                                   const CaseBreakdown& breakdown);

enum class BottleneckKind : std::uint8_t {
  none,  // nothing known
  loading,
  communication,
  compute,  // products and attention below their roof
  memory,   // other computation, which memory bandwidth bounds
  host,
  bubble,
  stragglers,
};
const char* name_of(BottleneckKind kind);

/// A variable of the registry that acts on something.
struct Lever {
  std::string variable;
  double share = 0;  // of the step, that the parts take on which it acts
  /// The part of `share` that it can save at most, with any value: the parts on which it acts fall to their least times
  /// in the configuration that it makes. Nothing where the peak is not known, or the variable moves it and nobody has
  /// measured or stated how far, and where it rests on a peak that the case exceeds, which is no peak.
  std::optional<double> most = {};
  double lost = 0;           // of the step, that the same parts are known to lose
  std::string acts_on = {};  // "computation, data communication"
};

struct Bottleneck {
  std::int32_t case_index = 0;
  BottleneckKind kind = BottleneckKind::none;
  double share = 0;      // of the step that is lost to it: beyond the roof where that is known, else all that it takes
  std::string evidence;  // in whole sentences
  std::vector<Lever> levers;                              // largest first
  std::vector<std::pair<BottleneckKind, double>> losses;  // all of them as shares of the step, largest first
};
Bottleneck find_bottleneck(const store::Result& result, const CaseBreakdown& breakdown, const Waterfall* waterfall,
                           const Stragglers& stragglers);

}  // namespace harness::analysis
