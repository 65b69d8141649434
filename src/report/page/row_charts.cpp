#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "analysis/estimator.h"
#include "report/page/page.h"
#include "report/sections.h"
#include "report/words.h"

namespace harness::page {
namespace {

bool drawn(const analysis::CaseSummary& row) {
  return row.role != store::CaseRole::baseline && row.effect && std::isfinite(row.effect->ratio) &&
         row.effect->verdict != analysis::Verdict::not_honoured;
}

// Wide enough for every improvement, and for the intervals of verdicts; others may be endless. What makes a step much
// slower may leave the drawing: beside a bar of +300 % no improvement could be seen.
Axis axis_for(const std::vector<const analysis::CaseSummary*>& cases, double smallest_effect) {
  double low = -1.5 * smallest_effect, high = 1.5 * smallest_effect;
  const auto cover = [&](double ratio) {
    low = std::min(low, ratio - 1);
    high = std::max(high, ratio - 1);
  };
  for (const analysis::CaseSummary* row : cases) {
    cover(row->effect->ratio);
    if (!analysis::moved(row->effect->verdict)) continue;
    cover(row->effect->low);
    cover(row->effect->high);
  }
  high = std::min(high, std::clamp(-4 * low, 0.1, 1.0));
  const int decimals = std::max(0, tick_decimals(tick_distance(high - low, 7)) - 2);
  return round_axis(low, high, 7, [decimals](double share) { return signed_percent(share, decimals); });
}

// A bar that lies beyond the drawing ends at its edge, an interval there without its cross bar.
Svg bar(const Axis& axis, const analysis::CaseSummary& row) {
  const analysis::Effect& effect = *row.effect;
  Svg svg;
  const double zero = axis.at(0), at = axis.at(effect.ratio - 1);
  svg.rectangle("bar", std::min(zero, at), std::max(zero, at), -7, 7);
  if (!std::isfinite(effect.low) || effect.low - 1 > axis.high) return svg;
  const double low = effect.low - 1, high = effect.high - 1;
  svg.line("interval", axis.at(low), 0, axis.at(high), 0);
  for (const double end : {low, high}) {
    if (axis.contains(end)) svg.line("interval", axis.at(end), -4, axis.at(end), 4);
  }
  return svg;
}

std::string caption_of(const store::Result& result, const analysis::Summary& summary) {
  const std::string within = analysis::within_threshold_words(result.smallest_effect);
  if (summary.predicted)
    return fmt::format("Bars: predicted change against the baseline. Shaded: {}, too close to call.", within);
  return fmt::format(
      "Bars: change against the baseline. Whiskers: {:.3g} % intervals, which hold for all comparisons together; one "
      "without its end goes on beyond the drawing. Shaded: {}, the effects too small to matter; a verdict must clear "
      "them. baseline_again is the baseline once more, as a control.",
      100 * result.confidence, within);
}

// The class that gives a case that is drawn the colour of its verdict.
std::string verdict_class(const analysis::CaseSummary& row) {
  if (row.judgement.reason == analysis::Reason::predicted) return row.effect->ratio < 1 ? "v-faster" : "v-slower";
  return fmt::format("v-{}", analysis::name_of(row.effect->verdict));
}

// The class of a bar, in the order of Part.
constexpr std::array<const char*, part_count> part_classes{
    "k-matmul", "k-attention", "k-compute", "k-compute", "k-tensor",   "k-pipeline", "k-data",
    "k-data",   "k-world",     "k-world",   "w-other",   "k-pipeline", "w-other",    "w-other"};

std::string in_points(double share) {
  return fmt::format("{} {:.1f} points", share >= 0 ? "−" : "+", 100 * std::abs(share));
}

}  // namespace

std::optional<report::Figure> tornado(const store::Result& result, const analysis::Summary& summary) {
  std::vector<const analysis::CaseSummary*> cases;
  for (const analysis::CaseSummary& row : summary.cases) {
    if (drawn(row)) cases.push_back(&row);
  }
  if (cases.empty()) return std::nullopt;
  std::ranges::stable_sort(cases, {}, [](const analysis::CaseSummary* row) { return row->effect->ratio; });

  RowChart chart;
  chart.axis = axis_for(cases, result.smallest_effect);
  chart.axis_title = fmt::format("← faster · change of the {} · slower →", report::what_changes(result));
  const Axis& axis = chart.axis;
  chart.behind.rectangle("band", axis.at(1 / (1 + result.smallest_effect) - 1), axis.at(result.smallest_effect), -1000,
                         1000);
  chart.behind.line("zero", axis.at(0), -1000, axis.at(0), 1000);
  for (const analysis::CaseSummary* row : cases) {
    chart.rows.push_back({report::label_of(result, *row),
                          fmt::format("{} {}", report::change_of(row->effect), analysis::name_of(row->judgement)),
                          bar(axis, *row), verdict_class(*row), report::interval_of(row->effect)});
  }

  report::Figure figure;
  figure.id = "tornado";
  figure.title = fmt::format("What each change does to the {}.", report::what_changes(result));
  figure.caption = caption_of(result, summary);
  const bool predicted = summary.predicted;
  using Legend = decltype(figure.legend);
  figure.legend = predicted ? Legend{{"v-faster", "predicted faster"},
                                     {"v-slower", "predicted slower"},
                                     {"v-unresolved", "too close to call"}}
                            : Legend{{"v-faster", "faster"},
                                     {"v-slower", "slower"},
                                     {"v-same", "same"},
                                     {"v-unresolved", "unresolved, or no verdict"}};
  chart.draw(figure, fmt::format("{} cases from {} ({}) to {} ({}); all numbers are in the table below.", cases.size(),
                                 cases.front()->name, report::change_of(cases.front()->effect), cases.back()->name,
                                 report::change_of(cases.back()->effect)));
  return figure;
}

report::Figure waterfall_chart(const analysis::Waterfall& waterfall, const std::string& id,
                               const std::string& case_name) {
  double high = 1, low = 0, level = 1;
  for (const analysis::WaterfallBar& bar : waterfall.bars) {
    level -= bar.points;
    high = std::max(high, level);
    low = std::min(low, level);
  }
  const report::Scale scale = report::scale_of_seconds(std::array{waterfall.step_s});

  RowChart chart;
  chart.axis = round_axis(low, high, 5, [](double share) { return percent(share, 0); });
  chart.axis_title = "share of the peak FLOP/s";
  chart.kind = "compact";
  const Axis& axis = chart.axis;
  report::Figure figure;
  figure.id = id;
  Svg whole;
  whole.rectangle("bar", axis.at(0), axis.at(1), -7, 7);
  chart.rows.push_back({"peak", "100 %", whole, "w-total"});
  level = 1;
  for (const analysis::WaterfallBar& bar : waterfall.bars) {
    const double next = level - bar.points;
    Svg svg;
    svg.line("link", axis.at(level), -14, axis.at(level), 7);
    svg.rectangle("bar", axis.at(std::min(level, next)), axis.at(std::max(level, next)), -7, 7);
    const std::string limit = bar.roof_s && *bar.roof_s > 0
                                  ? fmt::format(", limit {} {} ({})", scale.print(*bar.roof_s), scale.unit, bar.roof)
                                  : "";
    const std::string name = bar.part && bar.points < 0 ? bar.name + " (above the peak)" : bar.name;
    chart.rows.push_back({name, in_points(bar.points), svg, bar.part ? part_classes[index_of(*bar.part)] : "w-other",
                          bar.part ? scale.print(bar.seconds) + " " + scale.unit + limit : ""});
    level = next;
  }
  Svg rest;
  rest.line("link", axis.at(level), -14, axis.at(level), 7);
  rest.rectangle("bar", axis.at(0), axis.at(waterfall.mfu), -7, 7);
  chart.rows.push_back({"MFU", percent(waterfall.mfu), rest, "w-total"});
  figure.title = fmt::format("Where the MFU of {} goes.", case_name);
  figure.caption = fmt::format(
      "From the peak of the hardware to the measured MFU; the bars add up exactly. The parts are those of one profiled "
      "step, means over ranks. Beside each part: its time and, where it is known, the time at the limit of the "
      "machine, and what limits it.{}",
      waterfall.gpu_utilisation
          ? fmt::format(" NVML reported GPU utilisation of {} meanwhile: a busy GPU need not do useful work.",
                        percent(*waterfall.gpu_utilisation, 0))
          : "");
  chart.draw(figure, fmt::format("{} parts between 100 % and {}; all numbers are in the table above.",
                                 waterfall.bars.size(), percent(waterfall.mfu)));
  return figure;
}

}  // namespace harness::page
