#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "store/result.h"

namespace harness::analysis {

// Location, scatter and intervals of samples: pure arithmetic, no I/O. docs/method.md has the references.

/// A median absolute deviation times this is the standard deviation of a normal sample.
inline constexpr double mad_to_deviation = 1.4826;

/// Returns 1 - `confidence`, divided by the number of joint comparisons (Bonferroni). The confidence always comes from
/// a file or a configuration (measure.confidence): there is no default.
double family_alpha(int comparisons, double confidence);

/// Returns the mean; NaN for no values.
double average(std::span<const double> values);

/// Returns the standard deviation, with n - 1; NaN with fewer than two values.
double standard_deviation(std::span<const double> values);

/// A two-sided interval of a location at confidence 1 - alpha. NaN if the sample is too small.
struct ConfidenceInterval {
  double center = store::not_known, low = store::not_known, high = store::not_known;
  int n = 0;  // sample size
  double standard_error = store::not_known;

  /// For a sample that has a centre but is too small for an interval.
  ConfidenceInterval without_ends() const { return {.center = center, .n = n}; }
};

/// Returns Student's t interval of the mean of one sample, such as paired differences. One value gives only the centre.
ConfidenceInterval mean_interval(std::span<const double> values, double alpha);

/// Returns the interval of (trimmed mean of `second`) - (trimmed mean of `first`) for two independent samples. Yuen's
/// test for unequal variances (Biometrika 61, 1974): winsorised variances, with a fifth of the values trimmed at either
/// end. With fewer than five values a side nothing is trimmed, which gives Welch's t interval. n counts both samples.
/// NaN except for the centre if a side has fewer than two values, all NaN if a side has none.
ConfidenceInterval yuen_welch_interval(std::span<const double> first, std::span<const double> second, double alpha);

// Quantiles and tails of the distributions behind intervals and verdicts, by Boost.Math.

/// Returns the quantile of Student's t distribution, for 0 < probability < 1 and any real degrees of freedom > 0.
double student_t_quantile(double probability, double degrees);

/// Returns P(F > f) for Fisher's F distribution with these degrees of freedom, both > 0.
double f_upper_tail(double f, double numerator_degrees, double denominator_degrees);

/// Returns P(T > t) for noncentral t: T = (Z + shift) / sqrt(V / degrees), Z standard normal, V chi-square.
double noncentral_t_upper_tail(double t, double degrees, double shift);

/// Returns P(X >= k) for X ~ Binomial(n, p), 0 < p < 1.
double binomial_upper_tail(int n, int k, double p);

// The verdict about a case, and its reason. decide() makes every verdict of the program: for the cases of a sweep
// (summarise), for two sets of files (compare_sides, reproduce) and for several runs as one (pool_runs).

enum class Verdict : std::uint8_t {
  faster,        // the interval lies below the lower threshold
  slower,        // the interval lies above the upper threshold
  same,          // the interval lies between them: any difference is smaller than the smallest effect
  unresolved,    // the interval crosses a threshold
  not_honoured,  // the case's setting did not take effect, so its times say nothing about it
  none,          // no evidence, or none that is credible
};
const char* name_of(Verdict verdict);
inline bool moved(Verdict verdict) {
  return verdict == Verdict::faster || verdict == Verdict::slower;
}

/// The decision rule. `log_ratio` is the interval of the log of a ratio of times; ratios outside 1 / (1 + e) .. 1 + e
/// matter, where e is smallest_effect. Wholly outside → faster or slower, wholly inside → same, else unresolved; none
/// if an end is NaN.
Verdict verdict_of(const ConfidenceInterval& log_ratio, double smallest_effect);

/// Why a case has its verdict, or none.
enum class Reason : std::uint8_t {
  interval,            // the interval decided
  baseline,            // it is the reference of the others
  beyond_limit,        // faster than the hardware allows: something else was measured
  trains_differently,  // it should compute the baseline's result and does not
  failed,              // the case failed; the verdict rests on the rounds before that
  impossible,          // it cannot run here
  not_measured,        // it has no finished block
  not_honoured,        // its setting did not take effect
  too_few_rounds,      // fewer blocks than an interval needs (least_level_rounds, least_pairs)
  predicted,           // simulated, not measured, which proves nothing
  too_close_to_call,   // predicted, and the change is smaller than the error of predicted changes
};

/// The facts besides the interval that decide a verdict. The defaults describe an untroubled measurement of a change.
struct Evidence {
  store::CaseRole role = store::CaseRole::change;
  store::CaseStatus status = store::CaseStatus::ok;
  bool measured = true;      // it has a finished block
  bool honoured = true;      // its setting took effect
  bool within_limit = true;  // it exceeds no stated limit of the hardware
  bool trains_alike = true;  // it trains as the baseline does, or asks for another training
  bool predicted = false;    // its step is virtual time
};

struct Judgement {
  Verdict verdict = Verdict::none;
  Reason reason = Reason::not_measured;
};
/// Whether something else was timed than the case asked for.
inline bool timed_something_else(const Judgement& judgement) {
  return judgement.reason == Reason::beyond_limit || judgement.reason == Reason::trains_differently;
}
/// Applies verdict_of() and the evidence. A control asks for nothing, so its verdict is that of its interval, whatever
/// NCCL or a limit says.
Judgement decide(const ConfidenceInterval& log_ratio, double smallest_effect, const Evidence& evidence);

/// Returns the threshold on either side, such as "+10 % or -9.09 %". The smallest effect is a ratio, 1.1 or 1 / 1.1: a
/// step that is 9.09 % shorter undoes one that is 10 % longer.
std::string threshold_words(double smallest_effect);
/// Returns, for example, "between -9.09 % and +10 %".
std::string within_threshold_words(double smallest_effect);

/// Returns the name in tables: "faster", "unresolved", "beyond the limit", "too few rounds", "(baseline)", …
const char* name_of(const Judgement& judgement);

/// A case's step time compared with its reference's.
struct Effect {
  Verdict verdict = Verdict::none;
  double ratio = 0, low = 0, high = 0;  // the case's step time over the reference's; NaN where not known
  int rounds = 0;                       // pairs used
  int rounds_needed = 0;                // if unresolved: about how many rounds would settle it; else 0
  bool two_states = false;              // the interval extends to outlying blocks: Estimate::two_states
};

}  // namespace harness::analysis
