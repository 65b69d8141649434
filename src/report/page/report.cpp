#include "report/page/report.h"

#include <fmt/format.h>

#include "report/context.h"
#include "report/headline.h"
#include "report/page/sections.h"
#include "report/sections.h"

namespace harness::html {
namespace {

void add_notices(const Result& result, const Summary& summary, Document& document) {
  if (result.backend != "cuda") document.notices.push_back({backend_line(result.backend)});
  const std::size_t n = summary.warnings.size();
  if (n == 1) {
    document.notices.push_back({"There is a warning to read before you believe this, with a remedy.", "warnings"});
  } else if (n > 1) {
    document.notices.push_back(
        {fmt::format("There are {} warnings to read before you believe this, each with a remedy.", n), "warnings"});
  }
}

}  // namespace

Document make_report(const Result& result, const Findings& findings) {
  Document document;
  document.title = result.name.empty() ? "harness report" : result.name;
  document.subtitle = fmt::format("{} on {} {}, backend {}, {}", result.model_name, result.ranks,
                                  result.ranks == 1 ? "rank" : "ranks", result.backend, result.created);
  document.headline = headline(result, findings.summary);
  add_notices(result, findings.summary, document);
  document.sections.push_back(before_after_section(result, findings));
  if (findings.cost) document.sections.push_back(cost_section(*findings.cost));
  for (Section (*make)(const Result&, const Findings&) :
       {changes_section, steps_section, scaling_section, losses_section, timeline_section, lateness_section}) {
    document.sections.push_back(make(result, findings));
  }
  document.sections.push_back(nccl_section(result));
  document.sections.push_back(environment_section(result, findings));
  document.sections.push_back(warnings_section(findings));
  document.sections.push_back(configuration_section(result));
  document.sections.push_back(reproduce_section(result));
  std::erase_if(document.sections, [](const Section& section) { return section.pieces.empty(); });
  document.footer = fmt::format("Made by harness {} from run {}. This file needs nothing else: no script, no network.",
                                result.tool_version, result.run_uuid);
  return document;
}

Document make_report(const Result& result) {
  return make_report(result, find_all(result));
}

}  // namespace harness::html
