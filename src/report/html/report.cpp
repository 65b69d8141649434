#include "report/html/report.h"

#include <fmt/format.h>

#include "report/html/sections.h"
#include "report/words.h"

namespace harness::html {

Document make_report(const Result& result, const Findings& findings) {
  Document document;
  document.title = result.name.empty() ? "harness report" : result.name;
  document.subtitle = fmt::format("{} on {} rank{}, backend {}, {}", result.model_name, result.ranks,
                                  result.ranks == 1 ? "" : "s", result.backend, result.created);
  document.headline = headline(result, findings.summary);
  if (result.backend != "cuda") document.notices.push_back({context(result, findings.summary).front()});
  if (!findings.summary.warnings.empty()) {
    const std::size_t n = findings.summary.warnings.size();
    document.notices.push_back({fmt::format("{} warning{} to read before believing this, {}with a remedy", n,
                                            n == 1 ? "" : "s", n == 1 ? "" : "each "),
                                "warnings"});
  }
  document.sections.push_back(before_after_section(result, findings));
  document.sections.push_back(cost_section(findings));
  for (Section (*make)(const Result&, const Findings&) :
       {changes_section, steps_section, scaling_section, bottleneck_section, timeline_section, stragglers_section}) {
    document.sections.push_back(make(result, findings));
  }
  document.sections.push_back(nccl_section(result));
  document.sections.push_back(environment_section(result, findings));
  document.sections.push_back(warnings_section(result, findings));
  document.sections.push_back(configuration_section(result));
  document.sections.push_back(reproduce_section(result));
  std::erase_if(document.sections, [](const Section& section) { return section.pieces.empty(); });
  document.footer =
      fmt::format("Made by harness {} from run {}. Nothing in this file comes from elsewhere: no script, no network.",
                  result.tool_version, result.run_uuid);
  return document;
}

Document make_report(const Result& result) {
  return make_report(result, find_all(result));
}

}  // namespace harness::html
