#pragma once

#include <algorithm>

#include "config/calibration.h"

namespace harness::sim {

/// The time of a size by a measured curve. Beyond its points it goes on as the law of its kind does, law(size) in
/// seconds, from where it ends: a start alone, such as of filling four bytes, says nothing of a megabyte.
template <class Law>
double seconds_by(const config::Curve& curve, double size, Law&& law) {
  if (curve.empty()) return law(size);
  const double within = std::clamp(size, curve.points().front().size, curve.points().back().size);
  const double seconds = curve.seconds_at(within);
  return within == size ? seconds : seconds * law(size) / law(within);
}

}  // namespace harness::sim
