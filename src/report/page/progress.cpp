#include "report/page/charts.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "report/page/row_chart.h"
#include "report/scale.h"

namespace harness::page {
namespace {

constexpr double unknown = std::numeric_limits<double>::quiet_NaN();

// What stands where after a fix or a stage.
struct Height {
  std::string label;
  double speed = 1, low = unknown, high = unknown;  // against the start
  std::optional<double> mfu;
  bool proven = false;  // faster, by a verdict of its own
};

Height height_of(const std::string& label, const analysis::CaseSummary& row) {
  Height height{label, unknown, unknown, unknown, row.mfu};
  if (row.role == store::CaseRole::baseline) height.speed = 1;
  if (!row.effect) return height;
  height.speed = 1 / row.effect->ratio;
  height.low = 1 / row.effect->high;
  height.high = 1 / row.effect->low;
  return height;
}

std::string words_of(const Height& height) {
  if (!std::isfinite(height.speed)) return "not measured";
  const std::string speed = fmt::format("×{:.3g}", height.speed);
  return height.mfu ? fmt::format("{}, MFU {}", speed, percent(*height.mfu)) : speed;
}

report::Figure chart_of(const std::string& id, const std::string& title, const std::string& caption,
                        const std::vector<Height>& heights) {
  RowChart chart;
  double highest = 1;
  for (const Height& height : heights) {
    if (std::isfinite(height.speed)) highest = std::max(highest, height.speed);
    if (std::isfinite(height.high)) highest = std::max(highest, std::min(height.high, 1.5 * height.speed));
  }
  chart.axis = round_axis(0, highest, 6, [](double speed) { return fmt::format("×{:.3g}", speed); });
  chart.axis_title = "speed against the start";
  chart.behind.line("reference", chart.axis.at(1), -1000, chart.axis.at(1), 1000);
  report::Figure figure;
  figure.id = id;
  figure.title = title;
  figure.caption = caption;
  figure.numbers.columns = {{"step", true}, {"speed"}, {"low"}, {"high"}, {"MFU"}};
  const auto number = [](double value) { return std::isfinite(value) ? fmt::format("{:.3f}", value) : ""; };
  for (const Height& height : heights) {
    Svg bar;
    if (std::isfinite(height.speed)) bar.rectangle("bar", chart.axis.at(0), chart.axis.at(height.speed), -7, 7);
    if (std::isfinite(height.low) && std::isfinite(height.high))
      bar.line("interval", chart.axis.at(height.low), 0, chart.axis.at(height.high), 0);
    const bool faster = height.proven || (std::isfinite(height.low) && height.low > 1);
    const bool slower = std::isfinite(height.high) && height.high < 1;
    std::string kind = "v-same";
    if (faster) kind = "v-faster";
    if (slower) kind = "v-slower";
    chart.rows.push_back({height.label, words_of(height), bar, kind});
    figure.numbers.rows.push_back({height.label, number(height.speed), number(height.low), number(height.high),
                                   height.mfu ? percent(*height.mfu) : ""});
  }
  chart.draw(figure, fmt::format("{} steps, the last at {}; all numbers are in the table below.", heights.size(),
                                 words_of(heights.back())));
  return figure;
}

}  // namespace

std::optional<report::Figure> ladder_chart(const store::Result& result, const analysis::Summary& summary) {
  const analysis::CaseSummary* baseline = summary.baseline();
  if (summary.ladder.empty() || baseline == nullptr) return std::nullopt;
  std::vector<Height> heights{height_of("baseline", *baseline)};
  for (const analysis::LadderRung& rung : summary.ladder)
    heights.push_back(height_of("+ " + rung.name, summary.case_at(rung.together)));
  return chart_of("ladder", "From the baseline to all fixes, one on top of the other.",
                  analysis::is_predicted(summary)
                      ? "Predicted. The dashed line is the baseline."
                      : fmt::format("Whiskers: {:.3g} % intervals against the baseline, which hold for all "
                                    "comparisons of the sweep together. The dashed line is the baseline.",
                                    100 * result.confidence),
                  heights);
}

std::optional<report::Figure> climb_chart(const store::Result& result, const analysis::Summary& summary) {
  if (result.climb.empty()) return std::nullopt;
  std::vector<Height> heights;
  double speed = 1;
  std::string label = "as configured";
  for (const store::ResultStage& stage : result.climb) {
    heights.push_back({label, speed, unknown, unknown,
                       std::isfinite(stage.mfu) ? std::optional(stage.mfu) : std::nullopt, !heights.empty()});
    speed /= stage.ratio;
    label = "+ " + stage.change;
  }
  const analysis::CaseSummary* now = summary.baseline();
  heights.push_back({label, speed, unknown, unknown, now != nullptr ? now->mfu : std::nullopt, true});
  if (analysis::is_predicted(summary)) {
    return chart_of("climb", "From the configured baseline to the last predicted change.",
                    "The speeds are the products of the stages' effects, each predicted.", heights);
  }
  return chart_of("climb", "From the configured baseline to the last proven change.",
                  "The speeds are the products of the stages' effects, each measured in a sweep of its own; the table "
                  "has their intervals.",
                  heights);
}

}  // namespace harness::page
