#include "report/show.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <string>

#include "base/text.h"
#include "report/sections.h"
#include "report/words.h"

namespace harness::report {
namespace {

// Leaves the steps of other cases out of the findings. Returns what was left out, by short names.
std::vector<std::string> leave_out_steps(const store::Result& result, const ShownSteps& shown,
                                         analysis::Findings& findings) {
  std::set<std::int32_t> chosen;
  for (const std::string& name : shown.cases) chosen.insert(find_case(result, name));
  if (shown.detail == Detail::full && shown.cases.empty()) return {};
  if (shown.cases.empty() && findings.best_case) chosen.insert(*findings.best_case);
  const auto is_other = [&](const auto& of_case) {
    return result.at(of_case).role() != store::CaseRole::baseline && !chosen.contains(of_case.case_index);
  };
  std::vector<std::string> others;
  for (const analysis::StepFindings& step : findings.steps) {
    if (is_other(step)) others.push_back(short_name(result.at(step).name));
  }
  std::erase_if(findings.steps, is_other);
  if (findings.explanation) std::erase_if(findings.explanation->cases, is_other);
  return others;
}

}  // namespace

Document show_document(const store::Result& result, const analysis::Summary& summary,
                       const std::optional<analysis::CostEstimate>& cost, Detail detail) {
  Document document;
  document.headline = headline(result, summary);
  document.sections.push_back(overview_section(result, summary, detail));
  if (cost) document.sections.push_back(cost_section(*cost));
  return document;
}

Document breakdown_document(const store::Result& result, analysis::Findings findings, const ShownSteps& shown) {
  const std::vector<std::string> others = leave_out_steps(result, shown, findings);
  Document document = show_document(result, findings.summary, findings.cost, shown.detail);
  if (findings.explanation) {
    if (std::string words = diagnosis_words(*findings.explanation); !words.empty())
      document.notices.push_back({std::move(words), explanation_id});
  }
  document.sections.push_back(breakdown_section(result, findings));
  if (!others.empty()) {
    document.sections.back().add(
        Paragraph{fmt::format("Also profiled: {}. --case NAME shows one, -v all.", join(others, ", "))});
  }
  if (Section explained = explanation_section(result, findings); !explained.pieces.empty())
    document.sections.push_back(std::move(explained));
  document.sections.push_back(stragglers_section(result, findings));
  if (Section time = block_time_section(result); !time.pieces.empty()) document.sections.push_back(std::move(time));
  return document;
}

}  // namespace harness::report
