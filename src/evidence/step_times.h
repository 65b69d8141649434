#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>

namespace harness::evidence {

/// How steady the steps of a log are. Seconds.
struct StepTimes {
  std::int64_t intervals = 0;  // values of the log, each a step or a mean over several
  std::int64_t skipped = 0;    // of these at the beginning: warm-up
  double seconds = 0;          // the median of the others; after a jump that of the values behind it
  double low = 0, high = 0;    // its 95 % interval; 0: too few values
  double spread = 0;           // 1.4826 MAD / median
  std::int64_t spikes = 0;     // values over 1.5 times the median
  double lost = 0;             // their excess as a share of the time of all values but warm-up
  std::int64_t period = 0;     // values between spikes at a fixed distance; 0: there is none

  struct Jump {
    std::size_t at = 0;  // the first value after it, counted from the log's first
    double before = 0, after = 0;
    double share() const { return after / before - 1; }
  };
  std::optional<Jump> jump;
  std::optional<double> drift;  // as a share, over the values that count
};

/// Warm-up: the first tenth, at least 1 and at most 10 values. Spikes are left out of everything else. Then, on the
/// values that remain, at least 2 % and at least three robust deviations (1.4826 MAD) or it is not reported:
/// a jump, the split with five values on both sides that maximises |ln(median right / median left)|; else a drift,
/// the slope of Theil (1950) and Sen (1968) over the log. The interval of the median rests on order statistics and
/// needs no distribution. Throws Error for no values.
StepTimes judge_steps(std::span<const double> seconds);

}  // namespace harness::evidence
