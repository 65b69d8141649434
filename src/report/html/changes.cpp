#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "report/case_table.h"
#include "report/html/effect_words.h"
#include "report/html/ladder.h"
#include "report/html/scaling.h"
#include "report/html/sections.h"
#include "report/html/timeline_chart.h"
#include "report/html/tornado.h"

namespace harness::html {
namespace {

// What has no bar, and why.
Bullets not_compared(const Summary& summary) {
  Bullets list;
  for (const CaseSummary& one : summary.cases) {
    if (one.role != CaseRole::change) continue;
    const bool ignored = one.effect && one.effect->verdict == Verdict::not_honoured;
    const bool has_bar = one.effect && std::isfinite(one.effect->ratio) && !ignored;
    if (has_bar && one.status != CaseStatus::failed) continue;
    list.items.push_back(one.name + ": " + (ignored ? "" : verdict_of(one) + (one.reason.empty() ? "" : ": ")) +
                         one.reason);
  }
  return list;
}

}  // namespace

Section changes_section(const Result& result, const Findings& findings) {
  Section section{"changes", "What each change does", {}};
  auto figure = tornado(result, findings.summary);
  if (figure) {
    section.pieces.push_back(std::move(*figure));
  } else {
    section.pieces.push_back(Paragraph{"No change has been compared with the baseline."});
  }
  Bullets list = not_compared(findings.summary);
  if (!list.items.empty()) {
    section.pieces.push_back(Paragraph{"Without a verdict:", true});
    section.pieces.push_back(std::move(list));
  }
  CaseTable cases = case_table(result, findings.summary);
  section.pieces.push_back(Numbers{"All cases", std::move(cases.table), true});
  Bullets notes;
  for (std::size_t i = 0; i < cases.notes.size(); ++i) {
    notes.items.push_back(fmt::format("[{}] {}", i + 1, cases.notes[i]));
  }
  if (!notes.items.empty()) section.pieces.push_back(std::move(notes));
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

Section timeline_section(const Result& result, const Findings& findings) {
  Section section{"timeline", "One step", {}};
  double length = 0;
  for (const CaseSummary* one : {findings.baseline(), findings.best()}) {
    if (one != nullptr) length = std::max(length, timeline_length(result, one->case_index));
  }
  const auto add = [&](const CaseSummary* one, const char* id) {
    if (one == nullptr || length <= 0) return;
    if (auto figure = timeline_chart(result, one->case_index, id, length)) section.pieces.push_back(std::move(*figure));
  };
  add(findings.baseline(), "timeline-baseline");
  add(findings.best(), "timeline-best");
  if (section.pieces.empty()) {
    section.pieces.push_back(Paragraph{"The file has no profiled step of the baseline."});
  }
  return section;
}

}  // namespace harness::html
