#include "report/page/sections.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "report/page/heat_map.h"
#include "report/page/ladder.h"
#include "report/page/scaling.h"
#include "report/page/timeline_chart.h"
#include "report/page/tornado.h"
#include "report/page/waterfall_chart.h"
#include "report/sections.h"

namespace harness::html {
namespace {

// What has no bar, and why.
List not_compared(const Summary& summary) {
  List list;
  for (const CaseSummary& row : summary.cases) {
    if (row.role != CaseRole::change) continue;
    const bool honoured = row.judgement.reason != Reason::not_honoured;
    const bool has_bar = row.effect && std::isfinite(row.effect->ratio) && honoured;
    if (has_bar && row.status != CaseStatus::failed) continue;
    std::string why = row.reason;  // shows by itself that a request was not honoured
    if (honoured && !why.empty()) why.insert(0, ": ");
    if (honoured) why.insert(0, name_of(row.judgement));
    list.items.push_back(fmt::format("{}: {}", row.name, why));
  }
  return list;
}

void add_waterfall(const StepFindings& step, const CaseSummary& row, Section& section) {
  if (!step.waterfall) return;
  const char* id = row.role == CaseRole::baseline ? "waterfall-baseline" : "waterfall-best";
  section.pieces.push_back(waterfall_chart(*step.waterfall, id, row.name));
}

}  // namespace

Section changes_section(const Result& result, const Findings& findings) {
  Section section{"changes", "What each change does", {}};
  if (auto figure = tornado(result, findings.summary)) {
    section.pieces.push_back(std::move(*figure));
  } else {
    section.pieces.push_back(Paragraph{"No change has been compared with the baseline."});
  }
  List list = not_compared(findings.summary);
  if (!list.items.empty()) {
    section.pieces.push_back(Paragraph{"Without a verdict:", true});
    section.pieces.push_back(std::move(list));
  }
  CaseTable cases = case_table(result, findings.summary);
  section.pieces.push_back(Numbers{"All cases", std::move(cases.table), true});
  if (!cases.notes.empty()) section.pieces.push_back(List{std::move(cases.notes), List::Mark::number});
  return section;
}

Section steps_section(const Result& result, const Findings& findings) {
  Section section{"steps", "Step times", {}};
  if (auto figure = ladder(result, findings.summary)) {
    section.pieces.push_back(std::move(*figure));
  } else {
    section.pieces.push_back(Paragraph{"No block has finished."});
  }
  return section;
}

Section scaling_section(const Result& result, const Findings& findings) {
  Section section{"scaling-section", "Scaling", {}};
  if (auto found = scaling(result, findings)) {
    section.pieces.push_back(std::move(found->curve));
    if (found->what_grew) section.pieces.push_back(std::move(*found->what_grew));
  }
  return section;
}

Section losses_section(const Result& result, const Findings& findings) {
  Section section{"losses", "Where the time goes", {}};
  const StepFindings* baseline = nullptr;
  for (const CaseSummary* row : findings.before_and_after()) {
    const StepFindings* step = findings.step_of(*row);
    if (step == nullptr) continue;
    add_step(result, *step, baseline, section);
    add_waterfall(*step, *row, section);
    if (row->role == CaseRole::baseline) baseline = step;
  }
  const auto peak_known = [](const ResultCase& result_case) { return result_case.peak_flops_per_rank > 0; };
  if (std::ranges::none_of(result.cases, peak_known)) {
    section.pieces.push_back(Paragraph{
        "There is no MFU and no waterfall: the peak of the hardware is unknown. State it with a hardware file "
        "or peak_flops in the configuration."});
  } else if (section.pieces.empty()) {
    section.pieces.push_back(Paragraph{"The file has no profiled step of the baseline."});
  }
  if (!findings.rules.empty()) {
    section.pieces.push_back(Subheading{"The sweep as a whole"});
    section.pieces.push_back(List{findings.rules});
  }
  return section;
}

Section timeline_section(const Result& result, const Findings& findings) {
  Section section{"timeline", "One step", {}};
  double length = 0;
  for (const CaseSummary* row : findings.before_and_after()) {
    length = std::max(length, timeline_length(result, row->case_index));
  }
  for (const CaseSummary* row : findings.before_and_after()) {
    const char* id = row->role == CaseRole::baseline ? "timeline-baseline" : "timeline-best";
    if (length <= 0) continue;
    if (auto figure = timeline_chart(result, row->case_index, id, length)) section.pieces.push_back(std::move(*figure));
  }
  if (section.pieces.empty()) section.pieces.push_back(Paragraph{"The file has no profiled step of the baseline."});
  return section;
}

Section lateness_section(const Result& result, const Findings& findings) {
  Section section = stragglers_section(result, findings);
  const auto& heat = findings.stragglers.heat;
  if (!heat || heat->seconds.empty()) return section;
  std::string where = "Timed steps of the block with the largest excess";
  if (result.has_case(heat->case_index)) where += ", of " + result.at(*heat).name;
  section.pieces.push_back(heat_map(*heat, where + "."));
  return section;
}

}  // namespace harness::html
