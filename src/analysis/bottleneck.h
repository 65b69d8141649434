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
  memory,   // operations bound by memory bandwidth
  host,
  bubble,
  stragglers,
};
const char* name_of(BottleneckKind kind);

/// A variable of the registry that acts on something.
struct Lever {
  std::string variable;
  double share = 0;  // of the step, that what it acts on loses
  /// The share of the step that it can save at most, with any value. The parts that it acts on fall to their least
  /// times in the configuration that it makes, and all waiting of ranks and stages for each other may end. Nothing
  /// where it moves the peak and nobody has measured or stated how far, and where it rests on a peak that the case
  /// exceeds, which is no peak.
  std::optional<double> most = {};
  std::string acts_on = {};  // "computation, data communication"
};

struct Bottleneck {
  std::int32_t case_index = 0;
  BottleneckKind kind = BottleneckKind::none;
  double share = 0;                                       // of the step that is lost to it
  std::string evidence;                                   // in whole sentences
  std::vector<Lever> levers;                              // largest first
  std::vector<std::pair<BottleneckKind, double>> losses;  // all of them as shares of the step, largest first
};
Bottleneck find_bottleneck(const store::Result& result, const CaseBreakdown& breakdown, const Waterfall* waterfall,
                           const Stragglers& stragglers);

}  // namespace harness::analysis
