#include "analysis/verdict.h"

#include <fmt/format.h>

#include <array>
#include <cmath>
#include <cstddef>

namespace harness::analysis {

const char* name_of(Verdict verdict) {
  static constexpr std::array names{"faster", "slower", "same", "unresolved", "not honoured", "none"};
  return names[static_cast<std::size_t>(verdict)];
}

Verdict verdict_of(const ConfidenceInterval& log_ratio, double smallest_effect) {
  if (std::isnan(log_ratio.low) || std::isnan(log_ratio.high)) return Verdict::none;
  const double threshold = std::log1p(smallest_effect);
  if (log_ratio.low > threshold) return Verdict::slower;
  if (log_ratio.high < -threshold) return Verdict::faster;
  const bool inside = log_ratio.low > -threshold && log_ratio.high < threshold;
  return inside ? Verdict::same : Verdict::unresolved;
}

namespace {

Reason reason_for(Verdict verdict, bool is_small, const Evidence& evidence) {
  if (!evidence.within_limit) return Reason::beyond_limit;
  if (evidence.role == store::CaseRole::change && !evidence.trains_alike) return Reason::trains_differently;
  if (evidence.status == store::CaseStatus::failed) return Reason::failed;
  if (evidence.status == store::CaseStatus::impossible) return Reason::impossible;
  if (!evidence.measured) return Reason::not_measured;
  if (store::is_reference(evidence.role)) return Reason::baseline;
  if (evidence.predicted) return is_small ? Reason::too_close_to_call : Reason::predicted;
  if (verdict == Verdict::not_honoured) return Reason::not_honoured;
  return verdict == Verdict::none ? Reason::too_few_rounds : Reason::interval;
}

}  // namespace

Judgement decide(const ConfidenceInterval& log_ratio, double smallest_effect, const Evidence& evidence) {
  Verdict verdict = Verdict::none;
  if (!store::is_reference(evidence.role)) verdict = verdict_of(log_ratio, smallest_effect);
  if (evidence.role == store::CaseRole::change && !evidence.honoured) verdict = Verdict::not_honoured;
  if (evidence.role == store::CaseRole::change && !(evidence.within_limit && evidence.trains_alike))
    verdict = Verdict::none;
  const bool is_small = std::abs(log_ratio.center) < std::log1p(smallest_effect);
  return {verdict, reason_for(verdict, is_small, evidence)};
}

std::string threshold_words(double smallest_effect) {
  return fmt::format("{:+.3g} % or {:+.3g} %", 100 * smallest_effect, 100 * (1 / (1 + smallest_effect) - 1));
}

std::string within_threshold_words(double smallest_effect) {
  return fmt::format("between {:+.3g} % and {:+.3g} %", 100 * (1 / (1 + smallest_effect) - 1), 100 * smallest_effect);
}

const char* name_of(const Judgement& judgement) {
  // In the order of Reason; "": the verdict says it.
  static constexpr std::array names{
      "", "(baseline)",     "beyond the limit", "trains differently", "failed", "impossible", "not measured",
      "", "too few rounds", "predicted",        "too close to call"};
  static_assert(names.size() == static_cast<std::size_t>(Reason::too_close_to_call) + 1);
  const char* name = names[static_cast<std::size_t>(judgement.reason)];
  return *name == '\0' ? name_of(judgement.verdict) : name;
}

}  // namespace harness::analysis
