#include "analysis/findings.h"

#include <algorithm>

#include "analysis/case_ranks.h"
#include "analysis/rules.h"
#include "config/registry.h"

namespace harness::analysis {
Findings find_all(const store::Result& result) {
  Findings findings;
  findings.summary = summarise(result);
  const bool predicted = findings.summary.predicted;
  for (const CaseSummary* row : predicted ? findings.summary.predicted_changes() : findings.summary.proven_changes()) {
    if (config::purpose_of(result.at(*row).variable) == config::Purpose::scale || findings.summary.unreliable) continue;
    findings.best_case = row->case_index;
    break;
  }
  findings.stragglers = find_stragglers(result);
  findings.rules = fired_rules(result, findings.summary);
  for (CaseBreakdown& breakdown : break_down(result)) {
    StepFindings& step = findings.steps.emplace_back();
    step.case_index = breakdown.case_index;
    step.waterfall = waterfall(result, findings.summary.at(breakdown), breakdown);
    step.bottleneck =
        find_bottleneck(result, breakdown, step.waterfall ? &*step.waterfall : nullptr, findings.stragglers);
    step.rules = fired_rules(result, findings.summary, breakdown);
    step.spans = spans_of_case(result, breakdown.case_index);
    step.breakdown = std::move(breakdown);
  }
  return findings;
}

const CaseSummary* Findings::baseline() const {
  const CaseSummary* baseline = summary.baseline();
  return baseline != nullptr && baseline->blocks > 0 ? baseline : nullptr;
}

std::vector<const CaseSummary*> Findings::before_and_after() const {
  std::vector<const CaseSummary*> both{baseline(), best()};
  std::erase(both, nullptr);
  return both;
}

const StepFindings* Findings::step_of_case(std::int32_t case_index) const {
  const auto found = std::ranges::find(steps, case_index, &StepFindings::case_index);
  return found == steps.end() ? nullptr : &*found;
}

}  // namespace harness::analysis
