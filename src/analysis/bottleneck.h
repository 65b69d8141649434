#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "analysis/breakdown.h"
#include "analysis/stragglers.h"
#include "analysis/waterfall.h"
#include "store/result.h"

namespace harness::analysis {

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
