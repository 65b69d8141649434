#pragma once

#include <cstdint>
#include <limits>
#include <string>

#include "analysis/statistics.h"
#include "store/result.h"

namespace harness::analysis {

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
