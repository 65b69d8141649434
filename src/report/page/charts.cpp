// Charts of rows and of lines: effects of changes, MFU losses, bandwidth by size, scaling.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <set>

#include "analysis/estimator.h"
#include "base/text.h"
#include "base/units.h"
#include "config/registry.h"
#include "report/page/page.h"
#include "report/sections.h"
#include "report/words.h"

namespace harness::page {
namespace {

bool drawn(const analysis::CaseSummary& row) {
  return row.role != store::CaseRole::baseline && row.effect && std::isfinite(row.effect->ratio) &&
         row.effect->verdict != analysis::Verdict::not_honoured;
}

// Covers every improvement and the intervals of verdicts; other intervals may be endless. Large slowdowns may exceed
// the drawing: next to a bar of +300 %, improvements would be invisible.
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

// A bar beyond the drawing ends at its edge; an interval end there has no cross bar.
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
      "Bars: change against the baseline. Whiskers: {:.6g} % intervals, which hold for all comparisons together. A "
      "bar at the edge and a whisker without its end go on beyond the drawing. Shaded: {}, the effects too small to "
      "matter; a verdict must clear them. baseline_again is the baseline once more, as a control.",
      100 * result.confidence, within);
}

std::string verdict_class(const analysis::CaseSummary& row) {
  if (row.judgement.reason == analysis::Reason::predicted) return row.effect->ratio < 1 ? "v-faster" : "v-slower";
  return fmt::format("v-{}", analysis::name_of(row.effect->verdict));
}

// CSS classes of the bars, in the order of Part.
constexpr std::array<const char*, part_count> part_classes{
    "k-matmul", "k-attention", "k-compute", "k-compute", "k-tensor",   "k-pipeline", "k-data",
    "k-data",   "k-world",     "k-world",   "w-other",   "k-pipeline", "w-other",    "w-other"};

constexpr std::array<const char*, 5> swatches{"k-matmul", "k-data", "k-optimizer", "k-attention", "k-world"};

using Curve = std::map<double, const analysis::Rates*>;  // by size: of one collective, or in a grid of one setting
using Curves = std::map<std::string, Curve>;

// If several cases of a line have the same size (the baseline and its copy), the line shows the fastest.
Curves curves_of(const store::Result& result, const analysis::Summary& summary) {
  Curves curves;
  for (const analysis::CaseSummary& row : summary.cases) {
    if (!row.rates || !row.rates->bus_bytes_per_s) continue;
    std::string line = row.rates->operation;
    if (analysis::is_grid(result))
      line = row.role == store::CaseRole::change ? report::setting_of(result, row) : "baseline";
    const analysis::Rates*& shown = curves[line][row.rates->bytes];
    if (shown == nullptr || *shown->bus_bytes_per_s < *row.rates->bus_bytes_per_s) shown = &*row.rates;
  }
  return curves;
}

// Selects a few of many sizes, so that labels do not overlap.
std::vector<double> sizes_to_mark(const Curves& curves) {
  std::set<double> sizes;
  for (const auto& [operation, curve] : curves) {
    for (const auto& [bytes, rates] : curve) sizes.insert(bytes);
  }
  const std::vector<double> all(sizes.begin(), sizes.end());
  std::vector<double> some;
  for (const std::size_t i : evenly_chosen(all.size())) some.push_back(all[i]);
  return some;
}

struct Point {
  const analysis::CaseSummary* of = nullptr;
  double ranks = 0, rate = 0, efficiency = 0;
};

std::vector<Point> points_of(const store::Result& result, const analysis::Summary& summary) {
  std::vector<Point> points;
  for (const analysis::CaseSummary& row : summary.cases) {
    const store::ResultCase& result_case = result.at(row);
    if (row.blocks == 0 || !(row.tokens_per_second > 0) || result_case.ranks <= 0) continue;
    if (row.role == store::CaseRole::baseline || config::purpose_of(result_case.variable) == config::Purpose::scale) {
      points.push_back({&row, static_cast<double>(result_case.ranks), row.tokens_per_second, 0});
    }
  }
  std::ranges::stable_sort(points, {}, &Point::ranks);
  const auto as_many_ranks = [](const Point& a, const Point& b) { return a.ranks == b.ranks; };
  points.erase(std::unique(points.begin(), points.end(), as_many_ranks), points.end());
  for (Point& point : points) point.efficiency = point.rate / point.ranks / (points[0].rate / points[0].ranks);
  return points;
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
    chart.rows.push_back({report::short_name(report::label_of(result, *row)),
                          fmt::format("{} {}", report::change_of(row->effect), analysis::name_of(row->judgement)),
                          bar(axis, *row), verdict_class(*row), report::interval_of(row->effect)});
  }

  report::Figure figure{.id = "tornado",
                        .title = fmt::format("What each change does to the {}.", report::what_changes(result)),
                        .caption = caption_of(result, summary)};
  using Legend = decltype(figure.legend);
  figure.legend = summary.predicted ? Legend{{"v-faster", "predicted faster"},
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
  // Each bar hangs from the level at which the one above it ends.
  const auto add = [&](const std::string& name, const std::string& value, double from, double to, const char* kind,
                       const std::string& note = "") {
    Svg svg;
    if (!chart.rows.empty()) svg.line("link", axis.at(level), -14, axis.at(level), 7);
    svg.rectangle("bar", axis.at(std::min(from, to)), axis.at(std::max(from, to)), -7, 7);
    chart.rows.push_back({name, value, svg, kind, note});
  };
  level = 1;
  add("peak", "100 %", 0, 1, "w-total");
  for (const analysis::WaterfallBar& bar : waterfall.bars) {
    const double next = level - bar.points;
    const std::string limit = bar.roof_s && *bar.roof_s > 0
                                  ? fmt::format(", limit {} {} ({})", scale.print(*bar.roof_s), scale.unit, bar.roof)
                                  : "";
    add(bar.part && bar.points < 0 ? bar.name + " (above the peak)" : bar.name,
        fmt::format("{} {:.1f} points", bar.points >= 0 ? "−" : "+", 100 * std::abs(bar.points)), level, next,
        bar.part ? part_classes[index_of(*bar.part)] : "w-other",
        bar.part ? scale.print(bar.seconds) + " " + scale.unit + limit : "");
    level = next;
  }
  add("MFU", percent(waterfall.mfu), 0, waterfall.mfu, "w-total");
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

std::optional<report::Figure> bandwidth_chart(const store::Result& result, const analysis::Summary& summary) {
  const Curves curves = curves_of(result, summary);
  if (curves.empty()) return std::nullopt;
  report::Figure figure{.id = "bandwidth", .title = "Bus bandwidth against the size of the message.", .caption = {}};
  LineChart chart{.title = "bus bandwidth, GB/s", .x_title = "size of the message", .x = {}, .up = {}, .lines = {}};
  chart.x = logarithmic_axis(sizes_to_mark(curves), [](double bytes) { return show_bytes(bytes); });
  std::vector<double> values;
  const auto in_gigabytes = [](double bytes_per_s) { return report::gigabytes_per_s.print(bytes_per_s); };
  double highest = 0;            // of what was measured
  std::set<std::string> limits;  // of the largest message, each shown once
  for (const auto& [name, curve] : curves) {
    const std::string swatch = swatches[figure.legend.size() % swatches.size()];
    figure.legend.emplace_back(swatch, name);
    LineChart::Line limit{"reference", {}}, line{"curve " + swatch, {}, "mark " + swatch};
    for (const auto& [bytes, rates] : curve) {
      line.points.emplace_back(bytes, rates->bus_bytes_per_s);
      limit.points.emplace_back(bytes, rates->limit_bytes_per_s);
      highest = std::max(highest, rates->bus_bytes_per_s.value_or(0));
      for (const auto& value : {rates->bus_bytes_per_s, rates->limit_bytes_per_s}) values.push_back(value.value_or(0));
    }
    if (const auto& known = limit.points.back().second; known && limits.insert(in_gigabytes(*known)).second)
      chart.notes.emplace_back(*known, "limit " + in_gigabytes(*known));
    chart.lines.insert(chart.lines.end(), {std::move(limit), std::move(line)});
  }
  chart.up = decade_axis(values, in_gigabytes);
  figure.caption = fmt::format(
      "Both scales are logarithmic. A line per {}; a dot is the median over the blocks of a case, of several of one "
      "size the fastest. {}",
      analysis::is_grid(result) ? "setting" : "collective",
      limits.empty() ? "No limit of the links is known." : "Dashed: what the links allow.");
  chart.draw(figure, fmt::format("At most {} GB/s; all numbers are in the table below.", in_gigabytes(highest)));
  return figure;
}

report::Section scaling_section(const store::Result& result, const analysis::Findings& findings) {
  report::Section section{"scaling-section", "Scaling", {}};
  const std::vector<Point> points = points_of(result, findings.summary);
  if (points.size() < 2) return section;
  const Point &first = points.front(), &last = points.back();
  const double ideal_last = first.rate * last.ranks / first.ranks;
  LineChart::Line ideal{"reference", {{first.ranks, first.rate}, {last.ranks, ideal_last}}}, line{"curve", {}, "mark"};
  report::Figure figure;
  figure.numbers.columns = {{"ranks", true},       {"case", true}, {"tokens/s"},
                            {"tokens/s per rank"}, {"efficiency"}, {"MFU"}};
  std::vector<double> sizes;
  double low = first.rate, high = ideal_last;
  for (const Point& point : points) {
    sizes.push_back(point.ranks);
    low = std::min(low, point.rate / 1.15);
    high = std::max(high, point.rate * 1.05);
    line.points.emplace_back(point.ranks, point.rate);
    line.notes.push_back(fmt::format("{} ({})", report::Scale{}.print(point.rate), percent(point.efficiency, 0)));
    figure.numbers.rows.push_back({fmt::format("{:.0f}", point.ranks), point.of->name,
                                   report::Scale{}.print(point.rate), report::Scale{}.print(point.rate / point.ranks),
                                   percent(point.efficiency), report::share_words(point.of->mfu)});
  }
  figure.id = "scaling";
  figure.title = "Tokens per second and efficiency against the number of ranks.";
  figure.caption = fmt::format(
      "Both scales are logarithmic. Dashed: the tokens/s per rank of the smallest size, {}. In brackets: the "
      "efficiency, "
      "which is tokens/s per rank relative to that.",
      plural(std::llround(first.ranks), "rank"));
  LineChart chart{.title = "tokens/s", .x_title = "ranks", .x = {}, .up = {}, .lines = {}};
  chart.x = logarithmic_axis(sizes, [](double value) { return fmt::format("{:.0f}", value); });
  chart.up = {.low = low, .high = high, .margin = 0.02, .logarithmic = true, .ticks = {}, .label = {}};
  chart.lines = {std::move(ideal), std::move(line)};
  chart.draw(figure, fmt::format("Efficiency at {:.0f} ranks: {}; all numbers are in the table below.", last.ranks,
                                 percent(last.efficiency)));
  section.add(std::move(figure));
  return section;
}

}  // namespace harness::page
