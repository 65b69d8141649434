#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>
#include <set>
#include <tuple>
#include <utility>

#include "analysis/case_settings.h"
#include "base/units.h"
#include "config/registry.h"
#include "report/page/charts.h"
#include "report/page/row_chart.h"
#include "workloads/gpt/schedule_text.h"

namespace harness::page {
namespace {

using gpt::Pass;

struct PassKind {
  const char* swatch;
  const char* name;
};
// In the order of Pass::Kind.
constexpr std::array<PassKind, 4> pass_kinds{{{"p-forward", "forward"},
                                              {"p-backward", "backward"},
                                              {"p-input", "backward, gradients of inputs"},
                                              {"p-weight", "backward, gradients of weights"}}};
constexpr int most_numbered = 72;      // ticks, so that a number fits its box
constexpr double most_passes = 20000;  // so that the page stays small
constexpr double half_row = 8;         // pixels

const PassKind& look_of(const Pass& pass) {
  return pass_kinds[static_cast<std::size_t>(pass.kind)];
}

// A path of boxes for each kind and shade, in ticks; between two boxes a little is left free.
Svg drawing_of(const std::vector<gpt::TimedPass>& passes, int ticks, bool numbered) {
  constexpr double gap = 0.06;
  std::map<std::string, std::string> paths;  // by class
  Svg numbers;
  for (const gpt::TimedPass& timed : passes) {
    const double length = timed.end - timed.begin - gap;
    paths[fmt::format("{}{}", look_of(timed.pass).swatch, timed.pass.chunk % 2 == 1 ? " odd" : "")] +=
        fmt::format("M{:.2f} 0h{:.2f}v1h-{:.2f}z", timed.begin + gap / 2, length, length);
    if (!numbered) continue;
    numbers.text("p-number", (timed.begin + timed.end) / 2.0 / ticks, 4, Svg::Anchor::middle,
                 std::to_string(timed.pass.micro_batch));
  }
  std::string all;
  for (const auto& [kind, path] : paths) all += fmt::format(R"(<path class="{}" d="{}"/>)", kind, path);
  Svg svg;
  svg.stretched(0, 1, -half_row, 2 * half_row, ticks, 1, all);
  svg.append(numbers);
  return svg;
}

// Forward passes of which a later pass of the stage still needs something.
int most_in_flight(const std::vector<gpt::TimedPass>& passes) {
  const bool split = std::ranges::any_of(
      passes, [](const gpt::TimedPass& timed) { return timed.pass.kind == Pass::Kind::backward_weight; });
  const Pass::Kind ends = split ? Pass::Kind::backward_weight : Pass::Kind::backward;
  int now = 0, most = 0;
  for (const gpt::TimedPass& timed : passes) {
    if (timed.pass.kind == Pass::Kind::forward) most = std::max(most, ++now);
    if (timed.pass.kind == ends) --now;
  }
  return most;
}

std::optional<report::Figure> schedule_chart(const store::Result& result, const store::ResultCase& of,
                                             const config::Settings& settings) {
  const int stages = of.layout[program::Axis::pipeline];
  if (stages < 2 || of.micro_batches < 1 || of.status != store::CaseStatus::ok) return std::nullopt;
  const gpt::Pipeline pipeline{stages, settings.chunks_of_stage(), static_cast<int>(of.micro_batches)};
  if (2.0 * stages * pipeline.chunks * static_cast<double>(of.micro_batches) > most_passes) return std::nullopt;
  const auto timed = gpt::timetable(settings.pipeline_schedule, pipeline);
  const int ticks = gpt::length_of(timed);

  RowChart chart;
  chart.kind = "thin";
  chart.axis = linear_axis(0, ticks, 6, [](double value) { return fmt::format("{:.0f}", value); });
  chart.axis.margin = 0;
  chart.axis_title = "ticks";
  report::Figure figure;
  figure.id = fmt::format("schedule-{}", &of - result.cases.data());
  figure.numbers.columns = {{"stage"}, {"passes"}, {"busy ticks"}, {"idle ticks"}, {"most in flight"}};
  std::array<bool, pass_kinds.size()> present{};
  for (int stage = 0; stage < stages; ++stage) {
    const auto& passes = timed[stage];
    const int busy = gpt::busy_ticks(passes);
    chart.rows.push_back({fmt::format("stage {}", stage), percent(static_cast<double>(busy) / ticks, 0),
                          drawing_of(passes, ticks, ticks <= most_numbered), "", ""});
    figure.numbers.rows.push_back({std::to_string(stage), std::to_string(passes.size()), std::to_string(busy),
                                   std::to_string(ticks - busy), std::to_string(most_in_flight(passes))});
    for (const gpt::TimedPass& pass : passes) present[static_cast<std::size_t>(pass.pass.kind)] = true;
  }
  for (std::size_t kind = 0; kind < pass_kinds.size(); ++kind) {
    if (present[kind]) figure.legend.emplace_back(pass_kinds[kind].swatch, pass_kinds[kind].name);
  }
  figure.title =
      fmt::format("The schedule of {}, {}.", of.name, config::find_variable("pipeline_schedule")->print(settings));
  figure.caption = fmt::format(
      "What each pipeline stage would do if all passes of a chunk took equally long and messages took no time{}{}. The "
      "bubble: {}. "
      "On the right: how much of the step it is busy.",
      ticks <= most_numbered ? "; the numbers are micro-batches" : "",
      pipeline.chunks > 1 ? ", and every second chunk of layers is paler" : "",
      gpt::bubble_text(settings.pipeline_schedule, pipeline, timed));
  chart.draw(figure, fmt::format("{} stages over {} ticks; the table below has the passes of each.", stages, ticks));
  return figure;
}

}  // namespace

std::vector<report::Figure> schedule_charts(const store::Result& result) {
  constexpr std::size_t most_charts = 6;
  std::vector<report::Figure> charts;
  std::set<std::tuple<config::PipelineSchedule, int, int, std::int64_t>> drawn;
  for (const store::ResultCase& of : result.cases) {
    if (charts.size() == most_charts) break;
    const config::Settings settings = analysis::settings_of(result, of);
    std::optional<report::Figure> chart = schedule_chart(result, of, settings);
    const bool is_new = chart && drawn
                                     .emplace(settings.pipeline_schedule, of.layout[program::Axis::pipeline],
                                              settings.chunks_of_stage(), of.micro_batches)
                                     .second;
    if (is_new) charts.push_back(std::move(*chart));
  }
  return charts;
}

}  // namespace harness::page
