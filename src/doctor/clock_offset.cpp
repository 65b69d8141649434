#include "doctor/clock_offset.h"

#include <algorithm>
#include <limits>

namespace harness::doctor {

std::optional<ClockOffset> clock_offset(const std::vector<Glance>& glances) {
  double least = -std::numeric_limits<double>::infinity(), most = std::numeric_limits<double>::infinity();
  for (const Glance& glance : glances) {
    least = std::max(least, glance.there_s - glance.answered_s);
    most = std::min(most, glance.there_s - glance.asked_s);
  }
  if (glances.empty() || least > most) return std::nullopt;
  return ClockOffset{(least + most) / 2, (most - least) / 2};
}

}  // namespace harness::doctor
