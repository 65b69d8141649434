#include <fmt/format.h>

#include "report/html/heat_map.h"
#include "report/html/sections.h"
#include "report/words.h"

namespace harness::html {

Section stragglers_section(const Result& result, const Findings& findings) {
  Section section{"stragglers", "Stragglers", {}};
  const Stragglers& found = findings.stragglers;
  if (found.ranks.empty()) {
    section.pieces.push_back(Paragraph{result.ranks < 2 ? "One rank has nobody to be late for."
                                                        : "The file does not say which ranks were late."});
    return section;
  }
  const Straggler& worst = found.ranks.front();
  section.pieces.push_back(Paragraph{
      found.found()
          ? fmt::format("Rank {} on {} ({}) is late.", worst.rank, worst.host, worst.device)
          : std::string(
                "No rank is found to be late; the table has those that were last most often, which some rank must be."),
      true});
  if (!found.evidence.empty()) section.pieces.push_back(Paragraph{found.evidence});
  Table table;
  table.columns = {{"rank", true},
                   {"host", true},
                   {"device", true},
                   {"last in steps"},
                   {"then behind by"},
                   {"profiled steps that waited for it"},
                   {"its own time beyond the others'"},
                   {"", true}};
  for (const Straggler& one : found.ranks) {
    const std::vector<double> excess{one.last_excess_s};
    const Scale scale = scale_of_seconds(excess);
    table.rows.push_back({std::to_string(one.rank), one.host, one.device,
                          found.steps > 0 ? fmt::format("{} of {}", one.last_steps, found.steps) : "",
                          one.last_steps > 0 ? scale.print(one.last_excess_s) + " " + scale.unit : "",
                          found.cases > 0 ? fmt::format("{} of {}", one.late_cases, found.cases) : "",
                          found.cases > 0 ? signed_percent(one.late_share) + " of the step" : "",
                          one.named ? "late" : ""});
  }
  section.pieces.push_back(Numbers{"The ranks that were last most often", std::move(table), !found.found()});
  if (found.heat && !found.heat->seconds.empty()) {
    const HeatMap& heat = *found.heat;
    std::string where = "Timed steps of the block with the largest excess";
    if (heat.case_index >= 0 && heat.case_index < static_cast<int>(result.cases.size())) {
      where += ", of " + result.at(heat).name;
    }
    section.pieces.push_back(heat_map(heat, where + "."));
  }
  return section;
}

}  // namespace harness::html
