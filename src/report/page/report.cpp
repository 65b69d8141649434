#include "report/page/page.h"

#include <fmt/format.h>

#include "base/text.h"
#include "config/backend.h"
#include "report/context.h"
#include "report/page/sections.h"
#include "report/sections.h"
#include "report/show.h"

namespace harness::page {
namespace {

void add_notices(const store::Result& result, const analysis::Findings& findings, report::Document& document) {
  if (findings.explanation) {
    if (std::string words = report::diagnosis_words(*findings.explanation); !words.empty())
      document.notices.push_back({std::move(words), report::explanation_id});
  }
  if (!config::traits_of(result.backend).caveat.empty()) document.notices.push_back({report::backend_line(result)});
  const std::size_t n = findings.summary.warnings.size();
  if (n == 1) {
    document.notices.push_back({"There is a warning to read before you believe this, with a remedy.", "warnings"});
  } else if (n > 1) {
    document.notices.push_back(
        {fmt::format("There are {} warnings to read before you believe this, each with a remedy.", n), "warnings"});
  }
}

}  // namespace

report::Document make_report(const store::Result& result, const analysis::Findings& findings) {
  report::Document document;
  document.title = result.name.empty() ? "harness report" : result.name;
  document.subtitle = fmt::format("{} on {}, backend {}, {}", report::subject_of(result), plural(result.ranks, "rank"),
                                  result.backend, result.created);
  document.headline = report::headline(result, findings.summary);
  add_notices(result, findings, document);
  document.sections.push_back(report::before_after_section(result, findings));
  if (findings.cost) document.sections.push_back(report::cost_section(*findings.cost));
  struct Row {
    report::Section (*make)(const store::Result&, const analysis::Findings&);
    bool of_a_machine = false;  // it says nothing of virtual time
  };
  for (const Row& row : {Row{bandwidth_section}, Row{changes_section}, Row{scaling_section}, Row{losses_section, true},
                         Row{report::explanation_section}, Row{timeline_section}, Row{lateness_section, true}}) {
    if (!(row.of_a_machine && findings.summary.predicted)) document.sections.push_back(row.make(result, findings));
  }
  document.sections.push_back(report::block_time_section(result));
  document.sections.push_back(report::nccl_section(result));
  document.sections.push_back(report::doctor_section(result));
  document.sections.push_back(report::environment_section(result, findings));
  document.sections.push_back(report::warnings_section(findings));
  document.sections.push_back(report::configuration_section(result));
  document.sections.push_back(report::reproduce_section(result));
  std::erase_if(document.sections, [](const report::Section& section) { return section.pieces.empty(); });
  document.footer = fmt::format("Made by harness {} from run {}. This file needs nothing else: no script, no network.",
                                result.tool_version, result.run_uuid);
  return document;
}

report::Document make_report(const store::Result& result) {
  return make_report(result, analysis::find_all(result));
}

}  // namespace harness::page
