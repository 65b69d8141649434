#pragma once

#include <span>
#include <string>
#include <vector>

namespace harness {

// Pure arithmetic on spans; no I/O. References in docs/method.md.

double median(std::span<const double> values);  // NaN when empty

/// Quantiles of Student's t, any real degrees of freedom > 0.
double student_t_quantile(double probability, double degrees);

struct TrimmedInterval {
  double center = 0, low = 0, high = 0;  // trimmed mean and its interval; NaN when n is too small
  int n = 0;
  double standard_error = 0;
};
/// Yuen's interval of the trimmed mean of paired differences: `trim` from each end (0.2), winsorised variance,
/// t with h - 1 degrees of freedom, two-sided at confidence 1 - alpha.
TrimmedInterval yuen_interval(std::span<const double> differences, double alpha, double trim = 0.2);

/// The exact interval of the median, from the signs of differences: an order statistic from each end, such that the
/// median lies outside with probability alpha at most, whatever the distribution. The centre is the median. Infinite on
/// both sides where n is too small for alpha: it takes 1 + log2(1 / alpha) values.
TrimmedInterval sign_interval(std::span<const double> differences, double alpha);

/// What verdicts rest on.
enum class IntervalKind { yuen, sign };

/// not_honoured: what the case asked for did not happen, so its times say nothing about it.
enum class Verdict { faster, slower, same, unresolved, not_honoured, none };
const char* name_of(Verdict verdict);

struct Effect {
  Verdict verdict = Verdict::none;
  double ratio = 0, low = 0, high = 0;  // step time of the case over the baseline's; the interval is family-wise
  int rounds = 0;                       // pairs used
  int rounds_needed = 0;                // unresolved: an estimate of the rounds that would settle it; else 0
};
/// Compares paired block medians (same rounds, same order). comparisons: how many the family declares (Bonferroni).
/// smallest_effect: share; a ratio beyond 1 / (1 + e) .. 1 + e matters. The interval of the log ratio decides: wholly
/// outside → faster/slower, wholly inside → same, else unresolved.
Effect compare_paired(std::span<const double> baseline, std::span<const double> changed, int comparisons,
                      double smallest_effect, double confidence = 0.95, IntervalKind kind = IntervalKind::yuen);

/// The smallest effect that `rounds` rounds resolve with 80 % probability when block log ratios scatter with standard
/// deviation `deviation` and `comparisons` are made, as a share of the step time: a verdict must clear smallest_effect,
/// so it is more than that. Infinite for fewer than two rounds.
double resolvable_effect(int rounds, int comparisons, double deviation, double smallest_effect,
                         double confidence = 0.95);

}  // namespace harness
