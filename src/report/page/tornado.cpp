#include "report/page/tornado.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "report/effect_words.h"
#include "report/page/row_chart.h"
#include "report/page/verdict_class.h"
#include "report/scale.h"

namespace harness::html {
namespace {

bool drawn(const CaseSummary& one) {
  return one.role != CaseRole::baseline && one.effect && std::isfinite(one.effect->ratio) &&
         one.effect->verdict != Verdict::not_honoured;
}

// Wide enough for every improvement and its interval. What makes a step much slower may leave the drawing: beside a bar
// of +300 % no improvement could be seen.
Axis axis_for(const std::vector<const CaseSummary*>& cases, double smallest_effect) {
  double least = -1.5 * smallest_effect, most = 1.5 * smallest_effect;
  for (const CaseSummary* one : cases) {
    const Effect& effect = *one->effect;
    const bool decided = moved(effect.verdict);
    least = std::min(least, effect.ratio - 1);
    most = std::max(most, effect.ratio - 1);
    if (!std::isfinite(effect.low)) continue;
    // Intervals of few rounds are endless; those of a verdict are drawn whole.
    const double beyond = decided ? 1 : 1.5 * std::abs(effect.ratio - 1) + 4 * smallest_effect;
    least = std::min(least, std::max(effect.low - 1, effect.ratio - 1 - beyond));
    most = std::max(most, std::min(effect.high - 1, effect.ratio - 1 + beyond));
  }
  most = std::min(most, std::clamp(-4 * least, 0.1, 1.0));
  const int decimals = std::max(0, tick_decimals(tick_distance(most - least, 7)) - 2);
  return round_axis(least, most, 7, [decimals](double share) { return signed_percent(share, decimals); });
}

Svg bar(const Axis& axis, const CaseSummary& one) {
  const Effect& effect = *one.effect;
  Svg svg;
  const double zero = axis.at(0), at = axis.at(effect.ratio - 1);
  svg.rectangle("bar", std::min(zero, at), std::max(zero, at), -7, 7);
  if (effect.ratio - 1 > axis.high) svg.text("more", 1, 4, Svg::Anchor::end, "▸");
  if (!std::isfinite(effect.low) || effect.low - 1 > axis.high) return svg;
  const double low = effect.low - 1, high = effect.high - 1;
  svg.line("interval", axis.at(low), 0, axis.at(high), 0);
  for (const double end : {low, high}) {
    if (axis.contains(end)) {
      svg.line("interval", axis.at(end), -4, axis.at(end), 4);
    } else {
      svg.text("more", end < 0 ? 0 : 1, 4, end < 0 ? Svg::Anchor::start : Svg::Anchor::end, end < 0 ? "◂" : "▸");
    }
  }
  return svg;
}

Table numbers(const std::vector<const CaseSummary*>& cases) {
  Table table;
  table.columns = {{"case", true}, {"change"}, {"95 % interval"}, {"verdict", true}, {"rounds"}, {"rounds needed"}};
  for (const CaseSummary* one : cases) {
    table.rows.push_back({one->name, change_of(*one), interval_of(*one), name_of(one->judgement),
                          std::to_string(one->effect->rounds),
                          one->effect->rounds_needed == 0     ? ""
                          : one->effect->rounds_needed < 1000 ? std::to_string(one->effect->rounds_needed)
                                                              : "1000 or more"});
  }
  return table;
}

}  // namespace

std::optional<Figure> tornado(const Result& result, const Summary& summary) {
  std::vector<const CaseSummary*> cases;
  for (const CaseSummary& one : summary.cases) {
    if (drawn(one)) cases.push_back(&one);
  }
  if (cases.empty()) return std::nullopt;
  std::stable_sort(cases.begin(), cases.end(),
                   [](const CaseSummary* a, const CaseSummary* b) { return a->effect->ratio < b->effect->ratio; });

  RowChart chart;
  chart.axis = axis_for(cases, result.smallest_effect);
  chart.axis_title = "← faster · change of the step time · slower →";
  const Axis& axis = chart.axis;
  chart.behind.rectangle("band", axis.at(1 / (1 + result.smallest_effect) - 1), axis.at(result.smallest_effect), -1000,
                         1000);
  chart.behind.line("zero", axis.at(0), -1000, axis.at(0), 1000);
  bool cut = false;
  for (const CaseSummary* one : cases) {
    cut |= !axis.contains(one->effect->ratio - 1) ||
           (std::isfinite(one->effect->low) &&
            (!axis.contains(one->effect->low - 1) || !axis.contains(one->effect->high - 1)));
    chart.rows.push_back({one->name, fmt::format("{} {}", change_of(*one), name_of(one->judgement)), bar(axis, *one),
                          verdict_class(*one), interval_of(*one)});
  }

  Figure figure;
  figure.id = "tornado";
  figure.title = "What each change does to the step time.";
  figure.caption = fmt::format(
      "Bars: change against the baseline; whiskers: 95 % intervals, which hold for all comparisons together. The "
      "shaded "
      "band is ±{:.3g} %: an effect within it does not matter, and a verdict must clear it.{}{}",
      100 * result.smallest_effect,
      std::any_of(cases.begin(), cases.end(), [](const auto* one) { return one->role == CaseRole::control; })
          ? " baseline_again is the baseline itself, as a control."
          : "",
      cut ? " An arrow: it goes on beyond the drawing." : "");
  figure.legend = {{"v-faster", "faster"}, {"v-slower", "slower"}, {"v-same", "same"}, {"v-unresolved", "unresolved"}};
  figure.drawing = chart.drawn(
      "tornado-drawing", figure.title,
      fmt::format("{} cases from {} ({}) to {} ({}); all numbers are in the table below.", cases.size(),
                  cases.front()->name, change_of(*cases.front()), cases.back()->name, change_of(*cases.back())));
  figure.numbers = numbers(cases);
  return figure;
}

}  // namespace harness::html
