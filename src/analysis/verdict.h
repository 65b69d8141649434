#pragma once

#include <cstdint>
#include <limits>
#include <span>
#include <string>

#include "store/result.h"

namespace harness::analysis {

// Location, scatter and intervals of samples: pure arithmetic, no I/O. docs/method.md has the references.

/// A median absolute deviation times this is the standard deviation, if the sample is of a normal distribution.
inline constexpr double mad_to_deviation = 1.4826;

/// 1 - `confidence`, shared out over the comparisons that are made together (Bonferroni). The confidence is always a
/// file's or a configuration's (measure.confidence): there is no default that could stand in for it.
double family_alpha(int comparisons, double confidence);

/// The standard deviation, with n - 1; NaN with fewer than two values.
double standard_deviation(std::span<const double> values);

/// An interval of a location, two-sided at confidence 1 - alpha. NaN where the sample is too small.
struct ConfidenceInterval {
  double center = std::numeric_limits<double>::quiet_NaN();
  double low = std::numeric_limits<double>::quiet_NaN(), high = std::numeric_limits<double>::quiet_NaN();
  int n = 0;  // values that it rests on
  double standard_error = std::numeric_limits<double>::quiet_NaN();
};

/// Student's t interval of the mean of one sample, such as paired differences. All NaN with fewer than two values.
ConfidenceInterval mean_interval(std::span<const double> values, double alpha);

/// The interval of (trimmed mean of `second`) - (trimmed mean of `first`) for two independent samples: Yuen's test for
/// unequal variances (Biometrika 61, 1974): winsorised variances, and a fifth of the values trimmed at either end. With
/// fewer than five values a side nothing is trimmed, and it is Welch's t interval. n counts both samples. NaN but for
/// the centre when a side has fewer than two values, all NaN when a side has none.
ConfidenceInterval yuen_welch_interval(std::span<const double> first, std::span<const double> second, double alpha);

// Quantiles and tails of the distributions that intervals and verdicts rest on, by Boost.Math.

/// The quantile of Student's t distribution, for 0 < probability < 1 and any real degrees of freedom > 0.
double student_t_quantile(double probability, double degrees);

/// P(F > f) for Fisher's F distribution with these degrees of freedom, both > 0.
double f_upper_tail(double f, double numerator_degrees, double denominator_degrees);

/// P(T > t) for the noncentral t distribution: T = (Z + shift) / sqrt(V / degrees), Z standard normal, V chi-square.
double noncentral_t_upper_tail(double t, double degrees, double shift);

/// P(X >= k) for X ~ Binomial(n, p), 0 < p < 1.
double binomial_upper_tail(int n, int k, double p);

// The verdict about a case, and its reason. Every verdict of the program is made here: decide() is called for the cases
// of a sweep (summarise), for two sets of files (compare_sides, reproduce) and for several runs as one (pool_runs).

enum class Verdict : std::uint8_t {
  faster,        // than what it is compared with, by more than the smallest effect
  slower,        // the same way round
  same,          // the difference, if any, is smaller than the smallest effect
  unresolved,    // the interval reaches across a threshold
  not_honoured,  // what the case asked for did not happen, so its times say nothing about it
  none,          // there is no evidence, or none that can be believed
};
const char* name_of(Verdict verdict);
inline bool moved(Verdict verdict) {
  return verdict == Verdict::faster || verdict == Verdict::slower;
}

/// The one rule. `log_ratio` is the interval of the logarithm of a ratio of times; a ratio beyond 1 / (1 + e) .. 1 + e
/// matters, e being smallest_effect. Wholly outside → faster or slower, wholly inside → same, else unresolved; none
/// where an end is NaN.
Verdict verdict_of(const ConfidenceInterval& log_ratio, double smallest_effect);

/// Why a case has the verdict that it has, or none.
enum class Reason : std::uint8_t {
  interval,            // the interval decided
  baseline,            // it is what the others are compared with
  beyond_limit,        // faster than the hardware can be: something else was measured
  trains_differently,  // it should compute what the baseline computes and does not
  failed,              // the case failed; the verdict rests on the rounds before that
  impossible,          // it cannot run here
  not_measured,        // it has no finished block
  not_honoured,        // what it asked for did not happen
  too_few_rounds,      // fewer blocks than an interval needs (least_level_rounds, least_pairs)
  predicted,           // computed, not measured, which proves nothing
  too_close_to_call,   // the same, and the change is smaller than the error of predicted changes
};

/// The facts besides the interval that decide a verdict. The defaults are those of a change that was measured without
/// any trouble.
struct Evidence {
  store::CaseRole role = store::CaseRole::change;
  store::CaseStatus status = store::CaseStatus::ok;
  bool measured = true;      // it has a finished block
  bool honoured = true;      // what it asked for happened
  bool within_limit = true;  // no stated limit of the hardware is exceeded
  bool trains_alike = true;  // it trains as the baseline does, or is asked not to
  bool predicted = false;    // its step is virtual time
};

struct Judgement {
  Verdict verdict = Verdict::none;
  Reason reason = Reason::not_measured;
};
/// Whether what was timed is not what was asked for.
inline bool timed_something_else(const Judgement& judgement) {
  return judgement.reason == Reason::beyond_limit || judgement.reason == Reason::trains_differently;
}
/// A control asks for nothing, so its verdict is that of its interval whatever NCCL or a limit says.
Judgement decide(const ConfidenceInterval& log_ratio, double smallest_effect, const Evidence& evidence);

/// The threshold of a verdict on either side: "+10 % or -9.09 %". The smallest effect is a ratio, 1.1 or 1 / 1.1: what
/// makes a step 10 % longer is undone by what makes it 9.09 % shorter.
std::string threshold_words(double smallest_effect);
/// "between -9.09 % and +10 %".
std::string within_threshold_words(double smallest_effect);

/// In tables: "faster", "unresolved", "beyond the limit", "too few rounds", "(baseline)", …
const char* name_of(const Judgement& judgement);

/// How the step time of a case compares with another's.
struct Effect {
  Verdict verdict = Verdict::none;
  double ratio = 0, low = 0, high = 0;  // step time of the case over the other's; NaN where not known
  int rounds = 0;                       // pairs used
  int rounds_needed = 0;                // unresolved: an estimate of the rounds that would settle it; else 0
  bool two_states = false;              // the interval reaches to blocks apart from the others: Estimate::two_states
};

}  // namespace harness::analysis
