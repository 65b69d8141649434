#include "report/html/findings.h"

#include "report/html/effect_words.h"

namespace harness::html {

void find(const Result& result, Findings& findings) {
  findings.summary = summarise(result);
  for (const CaseSummary& one : findings.summary.cases) {
    if (one.name == "baseline" && one.blocks > 0) findings.baseline = &one;
  }
  findings.best = best_proven(findings.summary);
  findings.breakdowns = break_down(result);
  findings.stragglers = find_stragglers(result);
  findings.rules = fired_rules(result, findings.summary);
  for (const CaseSummary* one : {findings.baseline, findings.best}) {
    const CaseBreakdown* parts = one == nullptr ? nullptr : find_breakdown(findings.breakdowns, one->case_index);
    if (parts == nullptr) continue;
    const auto bars = waterfall(result, *one, *parts);
    findings.bottlenecks[one->case_index] =
        find_bottleneck(result, *parts, bars ? &*bars : nullptr, findings.stragglers);
    if (bars) findings.waterfalls.emplace(one->case_index, *bars);
    if (one != findings.baseline) continue;
    for (std::string& rule : fired_rules(result, findings.summary, *parts)) findings.rules.push_back(std::move(rule));
  }
}

}  // namespace harness::html
