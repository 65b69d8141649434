#pragma once

#include <span>
#include <vector>

#include "doctor/check.h"

namespace harness::doctor {

/// What counts as slow, as shares of the usual rate. `fail_below` 0: never a failure.
struct Tolerance {
  double warn_below = 0, fail_below = 0;
};

/// Of what hardware states, what anything sound reaches. Products of a GPU reach 70 to 90 % of the dense peak, rings
/// and trees about 80 % of the NVLinks, a port more than 90 % of its rate, copies of pinned memory 75 to 90 % of a PCIe
/// link.
inline constexpr double sound_share = 0.6;

struct Slow {
  std::size_t at = 0;  // in the rates
  Verdict verdict{};
};

/// Rates of things that should be alike.
struct Likeness {
  double usual = 0;        // their median, of two the larger; NaN: there is none
  std::size_t lowest = 0;  // where the lowest is
  std::vector<Slow> slow;
};
/// NaN: not measured, and left out. Slow is what is below its tolerance and, where five or more tell how much they
/// scatter, four robust standard deviations (1.4826 times the median absolute deviation) below the median as well.
Likeness compare_rates(std::span<const double> rates, const Tolerance& tolerance);

}  // namespace harness::doctor
