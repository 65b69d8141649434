#include <fmt/format.h>

#include <algorithm>

#include "report/html/sections.h"
#include "report/html/waterfall_chart.h"
#include "report/words.h"

namespace harness::html {
namespace {

// Parts of the profiled step, mean over ranks, of the baseline and the best.
Table parts_table(const Findings& findings) {
  Table table;
  std::vector<const Breakdown*> of;
  std::vector<double> lengths;
  for (const CaseSummary* row : findings.before_and_after()) {
    const StepFindings* step = findings.step_of(*row);
    if (step == nullptr) continue;
    of.push_back(&step->breakdown.mean);
    lengths.push_back(step->breakdown.mean.step_s);
  }
  if (of.empty()) return table;
  const Scale scale = scale_of_seconds(lengths);
  table.columns = {{"part of the step", true}, {"baseline " + scale.unit}, {"share"}};
  if (of.size() > 1) {
    table.columns.push_back({findings.best()->name + " " + scale.unit});
    table.columns.push_back({"share"});
  }
  for (const Part part : all_parts) {
    const auto has_part = [&](const Breakdown* breakdown) { return (*breakdown)[part].has_value(); };
    if (std::ranges::none_of(of, has_part)) continue;
    std::vector<std::string> row{name_of(part)};
    for (const Breakdown* breakdown : of) {
      const std::optional<double> seconds = (*breakdown)[part];
      row.push_back(seconds ? scale.print(*seconds) : "");
      row.push_back(seconds ? percent(*seconds / breakdown->step_s) : "");
    }
    table.rows.push_back(std::move(row));
  }
  std::vector<std::string> sum{"the step"}, hidden{"behind computation: communication"};
  for (const Breakdown* one : of) {
    sum.insert(sum.end(), {scale.print(one->step_s), percent(1)});
    hidden.insert(hidden.end(), {scale.print(one->overlapped_s()), percent(one->overlapped_s() / one->step_s)});
  }
  table.rows.push_back(std::move(sum));
  if (std::any_of(of.begin(), of.end(), [](const Breakdown* one) { return !one->overlapped.empty(); })) {
    table.rows.push_back(std::move(hidden));
  }
  return table;
}

void bottleneck_pieces(const Bottleneck& found, const std::string& name, Section& section) {
  if (found.kind == BottleneckKind::none) return;
  section.pieces.push_back(Paragraph{
      fmt::format("{}: the largest loss is {}, {} of the step.", name, name_of(found.kind), percent(found.share)),
      true});
  if (!found.evidence.empty()) section.pieces.push_back(Paragraph{found.evidence});
  if (found.levers.empty()) return;
  Table table;
  table.columns = {{"variable that acts on it", true}, {"could gain, of the step"}, {"acts on", true}};
  for (const Lever& lever : found.levers) {
    table.rows.push_back({lever.variable, percent(lever.gain_share), lever.acts_on});
  }
  section.pieces.push_back(Numbers{"", std::move(table), false});
}

}  // namespace

Section bottleneck_section(const Result& result, const Findings& findings) {
  Section section{"losses", "Where the time goes", {}};
  std::vector<std::string> rules = findings.rules;
  for (const CaseSummary* row : findings.before_and_after()) {
    const StepFindings* step = findings.step_of(*row);
    if (step == nullptr) continue;
    bottleneck_pieces(step->bottleneck, row->name, section);
    if (row->role == CaseRole::baseline) rules.insert(rules.end(), step->rules.begin(), step->rules.end());
  }
  if (!rules.empty()) {
    section.pieces.push_back(Paragraph{"Rules that people use in practice, and that fire here:"});
    section.pieces.push_back(Bullets{rules});
  }
  bool any = false;
  for (const CaseSummary* row : findings.before_and_after()) {
    const StepFindings* step = findings.step_of(*row);
    if (step == nullptr || !step->waterfall) continue;
    const char* id = row->role == CaseRole::baseline ? "waterfall-baseline" : "waterfall-best";
    section.pieces.push_back(waterfall_chart(*step->waterfall, id, row->name));
    any = true;
  }
  if (!any) {
    const bool no_peak = std::all_of(result.cases.begin(), result.cases.end(),
                                     [](const ResultCase& one) { return !(one.peak_flops_per_rank > 0); });
    section.pieces.push_back(
        Paragraph{no_peak ? "No waterfall: the peak of the hardware is unknown, so there is no MFU. A hardware file or "
                            "peak_flops in the configuration states it."
                          : "No waterfall: the file holds no profiled step that says enough."});
  }
  Table parts = parts_table(findings);
  if (!parts.rows.empty()) {
    section.pieces.push_back(
        Numbers{"Parts of one profiled step, means over ranks; empty: no such part", std::move(parts), true});
  }
  return section;
}

}  // namespace harness::html
