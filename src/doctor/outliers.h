#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "doctor/check.h"

namespace harness::doctor {

/// The limits below which a rate is slow, as shares of the rate of the fast ones. `fail_below` 0: never a failure.
/// Below `slow_anyway` a rate is slow even where rates scatter so widely that no group of slow ones stands apart.
struct Tolerance {
  double warn_below = 0, fail_below = 0, slow_anyway = 0;
};

/// The share of the hardware's stated rate that anything sound reaches. Products of a GPU reach 70 to 90 % of the dense
/// peak, rings and trees about 80 % of the NVLinks, a port more than 90 % of its rate, copies of pinned memory 75 to 90
/// % of a PCIe link.
inline constexpr double sound_share = 0.6;

struct Slow {
  std::size_t at = 0;  // in the rates
  Verdict verdict{};
};

/// Rates of things that should be alike.
struct Likeness {
  double usual = 0;        // what the fast ones reach: their upper quartile; NaN: there is none
  std::size_t lowest = 0;  // where the lowest is
  std::vector<Slow> slow;
};
/// Finds the slow ones, be they one, half or all but one. NaN and infinity: not measured, and left out.
///
/// Rates fall apart into a slow and a fast group where the distance between the means of their logarithms exceeds what
/// they scatter within the groups; of the fast group the same is asked again. The slow ones are then those below their
/// tolerance. A fast group has at least one of 32, so that a few measurements that are too good accuse nobody.
///
/// Simulated with normal scatter (outliers_test.cpp): if some are slower by a tenth and all scatter by 1 %, fewer than
/// 1 of 200 sets is judged wrongly. Of healthy sets, fewer than 1 of 1000 has a finding at 1 % scatter, and 1 of 30 at
/// 2 %. At 3 % it is 1 of 500 from 16 rates on and 1 of 40 of eight, but 1 of 6 of up to four: their scatter is hardly
/// known.
Likeness compare_rates(std::span<const double> rates, const Tolerance& tolerance);

}  // namespace harness::doctor
