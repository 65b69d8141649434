#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "analysis/breakdown.h"
#include "analysis/summary.h"
#include "base/text.h"
#include "config/backend.h"
#include "report/page/page.h"
#include "report/sections.h"

namespace harness::page {
namespace {

// "timeline-baseline", "timeline-best"
std::string id_of(const char* chart, const analysis::CaseSummary& row) {
  return fmt::format("{}-{}", chart, store::is_reference(row.role) ? "baseline" : "best");
}

report::Section changes_section(const store::Result& result, const analysis::Findings& findings) {
  const bool compares = !analysis::sweeps_sizes_alone(result);  // of sizes none is better
  report::Section section{"changes", compares ? "What each change does" : "All sizes", {}};
  if (compares) section.add(tornado(result, findings.summary));
  if (compares && section.pieces.empty())
    section.add(report::Paragraph{"No change has been compared with the baseline."});
  report::CaseTable cases = report::case_table(result, findings.summary);
  section.add(report::Numbers{compares ? "All cases" : "", std::move(cases.table), compares});
  section.add(report::List{std::move(cases.notes), report::List::Mark::number});
  return section;
}

report::Section losses_section(const store::Result& result, const analysis::Findings& findings) {
  report::Section section{"losses", "Where the time goes", {}};
  // The step repeats one operation: its rates say what there is to say.
  if (report::measured_by(result) != report::Measured::training) return section;
  const analysis::StepFindings* baseline = nullptr;
  for (const analysis::CaseSummary* row : findings.before_and_after()) {
    const analysis::StepFindings* step = findings.step_of(*row);
    if (step == nullptr) continue;
    report::add_step(result, findings, *step, baseline, section);
    if (step->waterfall) section.add(waterfall_chart(*step->waterfall, id_of("waterfall", *row), row->name));
    if (store::is_reference(row->role)) baseline = step;
  }
  if (section.pieces.empty())
    section.add(report::Paragraph{fmt::format("The file has no {} of the baseline.", analysis::step_in_parts(result))});
  return section;
}

report::Section timeline_section(const store::Result& result, const analysis::Findings& findings) {
  report::Section section{"timeline", "One step", {}};
  std::vector<std::pair<const analysis::CaseSummary*, analysis::DrawnStep>> steps;
  double length_s = 0;  // of the longest: the charts can be compared
  for (const analysis::CaseSummary* row : findings.before_and_after()) {
    steps.emplace_back(row, analysis::drawn_step(result, row->case_index));
    for (const analysis::DrawnInterval& x : steps.back().second.intervals) length_s = std::max(length_s, x.end_s);
  }
  for (const auto& [row, step] : steps) {
    const std::string title = fmt::format("One {} of {}.", analysis::step_in_parts(result), row->name);
    section.add(timeline_chart(step, id_of("timeline", *row), title, length_s));
  }
  if (section.pieces.empty())
    section.add(report::Paragraph{fmt::format("The file has no {} of the baseline.", analysis::step_in_parts(result))});
  return section;
}

report::Section lateness_section(const store::Result& result, const analysis::Findings& findings) {
  report::Section section = report::stragglers_section(result, findings);
  const std::vector<double>& late = findings.stragglers.late_share;
  if (!late.empty()) section.add(late_ranks_chart(result, late));
  return section;
}

void add_notices(const store::Result& result, const analysis::Findings& findings, report::Document& document) {
  if (findings.explanation) {
    if (std::string words = report::diagnosis_words(*findings.explanation); !words.empty())
      document.notices.push_back({std::move(words), report::explanation_id});
  }
  if (!config::traits_of(result.backend).caveat.empty()) document.notices.push_back({report::backend_line(result)});
  if (const std::size_t n = findings.summary.warnings.size(); n > 0)
    document.notices.push_back({fmt::format("Warnings to read before you believe this: {}.", n), "warnings"});
}

}  // namespace

report::Document make_report(const store::Result& result, const analysis::Findings& findings) {
  report::Document document;
  document.title = result.name.empty() ? "harness report" : result.name;
  document.subtitle = fmt::format("{} on {}, backend {}, {}", report::subject_of(result), plural(result.ranks, "rank"),
                                  result.backend, result.created);
  document.headline = report::headline(result, findings.summary);
  add_notices(result, findings, document);
  const auto add = [&](report::Section section) {
    if (!section.pieces.empty()) document.sections.push_back(std::move(section));
  };
  const bool measured = !findings.summary.predicted;  // else there is no machine to speak of
  if (findings.cost) add(report::cost_section(*findings.cost));
  report::Section bandwidth{"bandwidth-section", "Bandwidth", {}};
  bandwidth.add(bandwidth_chart(result, findings.summary));
  add(std::move(bandwidth));
  add(changes_section(result, findings));
  add(scaling_section(result, findings));
  if (measured) add(losses_section(result, findings));
  add(report::explanation_section(result, findings));
  add(timeline_section(result, findings));
  if (measured) add(lateness_section(result, findings));
  add(report::nccl_section(result));
  add(report::environment_section(result, findings));
  add(report::warnings_section(findings));
  add(report::configuration_section(result));
  document.footer = fmt::format("Made by harness {} from run {}. This file needs nothing else: no script, no network.",
                                result.tool_version, result.run_uuid);
  return document;
}

}  // namespace harness::page
