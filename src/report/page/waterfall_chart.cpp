#include "report/page/charts.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "report/page/drawing.h"
#include "report/words.h"

namespace harness::page {
namespace {

// The class of a bar, in the order of Part.
constexpr std::array<const char*, part_count> part_classes{
    "k-matmul", "k-attention", "k-compute", "k-compute", "k-tensor",   "k-pipeline", "k-data",
    "k-data",   "k-world",     "k-world",   "w-other",   "k-pipeline", "w-other",    "w-other"};

std::string in_points(double share) {
  return fmt::format("{} {:.1f} points", share >= 0 ? "−" : "+", 100 * std::abs(share));
}

}  // namespace

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
