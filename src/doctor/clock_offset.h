#pragma once

#include <optional>
#include <vector>

namespace harness::doctor {

/// A question for the time elsewhere: when it was asked and answered by one's own clock, and the other's in between.
struct Glance {
  double asked_s = 0, there_s = 0, answered_s = 0;  // unix time
};

/// How far another clock is ahead, and by how much that may be wrong.
struct ClockOffset {
  double offset_s = 0, uncertainty_s = 0;
};

/// What all glances allow (Cristian's bound): there - answered <= offset <= there - asked of each. Nothing where there
/// is none, or where a clock was set meanwhile, so that they contradict each other.
std::optional<ClockOffset> clock_offset(const std::vector<Glance>& glances);

}  // namespace harness::doctor
