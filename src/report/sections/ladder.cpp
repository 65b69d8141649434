#include <fmt/format.h>

#include <cmath>

#include "analysis/summary.h"
#include "report/effect_words.h"
#include "report/scale.h"
#include "report/sections.h"

namespace harness::report {
namespace {

std::string verdict_of(const store::Result& result, const analysis::Summary& summary,
                       const std::optional<analysis::Effect>& effect) {
  if (!effect) return "not measured";
  if (!summary.predicted) return name_of(effect->verdict);
  const analysis::ConfidenceInterval centre{.center = std::log(effect->ratio)};
  return analysis::name_of(analysis::decide(centre, result.smallest_effect, {.predicted = true}));
}

std::string mfu_of(const analysis::CaseSummary& row) {
  return row.mfu ? percent(*row.mfu) : "";
}

Table table_of(const store::Result& result, const analysis::Summary& summary, const Scale& scale) {
  Table table;
  table.columns = {{"fix", true},
                   {"step " + scale.unit},
                   {"MFU"},
                   {"on top"},
                   {interval_heading(result.confidence)},
                   {"verdict", true},
                   {"alone"},
                   {"interaction"},
                   {interval_heading(result.confidence)}};
  if (const analysis::CaseSummary* baseline = summary.baseline()) {
    table.rows.push_back(
        {"(baseline)", scale.print(baseline->step_seconds), mfu_of(*baseline), "", "", "", "", "", ""});
  }
  for (const analysis::LadderRung& rung : summary.ladder) {
    const analysis::CaseSummary& row = summary.case_at(rung.together);
    const bool first = &rung == &summary.ladder.front();
    table.rows.push_back({first ? rung.name : "+ " + rung.name, scale.print(row.step_seconds), mfu_of(row),
                          change_of(rung.on_top), interval_of(rung.on_top), verdict_of(result, summary, rung.on_top),
                          change_of(summary.case_at(rung.alone).effect), change_of(rung.interaction),
                          interval_of(rung.interaction)});
  }
  if (summary.predicted) {  // without the intervals
    table.remove_column(8);
    table.remove_column(4);
  }
  return table;
}

// "All of them together: step time -41.0 % [-43.1 %, -38.8 %] against the baseline, faster; MFU from 7.1 % to 12.0 %."
std::string total_of(const analysis::Summary& summary) {
  const analysis::CaseSummary& all = summary.case_at(summary.ladder.back().together);
  if (!all.effect) return "All fixes together were not measured.";
  const std::string interval = interval_words(all.effect->low, all.effect->high);
  std::string text =
      fmt::format("All fixes together: step time {}{}{} against the baseline, {}", change_words(all.effect->ratio),
                  interval.empty() ? "" : " ", interval, analysis::name_of(all.judgement));
  const analysis::CaseSummary* baseline = summary.baseline();
  if (baseline != nullptr && baseline->mfu && all.mfu)
    text += fmt::format("; MFU from {} to {}", percent(*baseline->mfu), percent(*all.mfu));
  return text + ".";
}

}  // namespace

Section ladder_section(const store::Result& result, const analysis::Summary& summary) {
  Section section{"ladder-section", "Ladder", {}};
  if (summary.ladder.empty()) return section;
  std::vector<double> seconds;
  for (const analysis::CaseSummary& row : summary.cases) seconds.push_back(row.step_seconds);
  section.add(Numbers{"Each fix on top of those above it:", table_of(result, summary, scale_of_seconds(seconds))});
  section.add(List{{total_of(summary),
                    "on top: the step time with this fix and all above it, against that with those above it. alone: "
                    "this fix against the baseline. interaction: on top against alone; below 0 % it does more together "
                    "with the others than alone.",
                    fmt::format("Step time and MFU are of this fix and all above it.{}",
                                summary.predicted ? "" : " All intervals of the sweep hold together.")},
                   List::Mark::none});
  return section;
}

}  // namespace harness::report
