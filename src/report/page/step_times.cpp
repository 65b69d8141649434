#include "report/page/charts.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "analysis/blocks.h"
#include "base/median.h"
#include "report/case_label.h"
#include "report/effect_words.h"
#include "report/metrics.h"
#include "report/page/row_chart.h"
#include "report/scale.h"

namespace harness::page {
namespace {

struct Row {
  const analysis::CaseSummary* of = nullptr;
  std::vector<double> blocks;  // medians, in order of blocks
};

std::vector<Row> rows_of(const store::Result& result, const analysis::Summary& summary) {
  std::vector<Row> all;
  for (const analysis::CaseSummary& of : summary.cases) {
    Row row{&of, {}};
    for (const analysis::FinishedBlock& block : analysis::finished_blocks(result, of.case_index))
      row.blocks.push_back(block.seconds);
    if (!row.blocks.empty()) all.push_back(std::move(row));
  }
  std::stable_sort(all.begin(), all.end(),
                   [](const Row& a, const Row& b) { return a.of->step_seconds > b.of->step_seconds; });
  return all;
}

const char* process_words(const store::Result& result) {
  return analysis::shares_processes(result) ? ", in processes that it may share with other blocks of its round"
                                            : ", a fresh process on every rank";
}

// Of training steps, one case or block that took ten times as long must not press all others together. Operations of
// different sizes differ by so much.
std::pair<double, double> range_of(const std::vector<Row>& rows, bool all) {
  std::vector<double> medians;
  for (const Row& row : rows) medians.push_back(row.of->step_seconds);
  const double limit = all ? INFINITY : 2 * median(medians);
  double low = INFINITY, high = 0;
  for (const Row& row : rows) {
    for (const double seconds : row.blocks) {
      low = std::min(low, seconds);
      high = std::max(high, seconds);
    }
  }
  return {low, std::min(high, limit)};
}

// In terms of the scale; ticks at 1, 2 or 5 times a power of ten, or at these powers where that is too many.
Axis factor_axis(double low, double high) {
  constexpr std::size_t max_ticks = 10;
  std::vector<double> ticks;
  for (const bool all : {true, false}) {
    ticks.clear();
    for (int exponent = static_cast<int>(std::floor(std::log10(low))); std::pow(10, exponent) < high; ++exponent) {
      const double power = std::pow(10, exponent);
      for (const double factor : {1, 2, 5}) {
        if (factor == 1 || all) ticks.push_back(factor * power);
      }
    }
    ticks.push_back(ticks.back() * (all ? 2 : 10));
    if (ticks.size() <= max_ticks) break;
  }
  return logarithmic_axis(ticks, {});
}

Svg dots(const Axis& axis, const Row& row) {
  constexpr std::size_t max_dots = 200;  // dots in a row
  Svg svg;
  const std::size_t stride = (row.blocks.size() + max_dots - 1) / max_dots;
  for (std::size_t i = 0; i < row.blocks.size(); i += stride) {
    const double seconds = row.blocks[i];
    // Spread over the row's height, so that equal ones can be told apart.
    const double y = static_cast<double>(i * 7 % 13) - 6;
    svg.circle("dot", axis.at(seconds), y * 0.9, 2.4);
  }
  const bool beyond = std::any_of(row.blocks.begin(), row.blocks.end(), [&](double x) { return x > axis.high; });
  if (beyond) svg.text("more", 1, 4, Svg::Anchor::end, "▸");
  const double at = axis.at(row.of->step_seconds);
  svg.line("median", at, -10, at, 10);
  return svg;
}

}  // namespace

std::optional<report::Figure> step_times(const store::Result& result, const analysis::Summary& summary) {
  const std::vector<Row> rows = rows_of(result, summary);
  if (rows.empty()) return std::nullopt;
  const bool factors = report::measured_by(result) != report::Measured::training;
  const auto [low, high] = range_of(rows, factors);
  const std::vector<double> ends{low, high};
  const report::Scale scale = report::scale_of_seconds(ends);
  RowChart chart;
  const int decimals = tick_decimals(tick_distance((high - low) / scale.factor, 6));
  chart.axis = factors ? factor_axis(low / scale.factor, high / scale.factor)
                       : round_axis(low / scale.factor, high / scale.factor, 6, {});
  // In seconds again: all values are.
  chart.axis.low *= scale.factor;
  chart.axis.high *= scale.factor;
  for (double& tick : chart.axis.ticks) tick *= scale.factor;
  chart.axis.label = [=](double seconds) {
    return factors ? fmt::format("{:.4g}", seconds / scale.factor)
                   : fmt::format("{:.{}f}", seconds / scale.factor, decimals);
  };
  chart.axis_title = "step time, " + scale.unit + (factors ? " (log scale)" : "");
  chart.kind = "compact";

  report::Figure figure;
  figure.id = "step-times";
  figure.numbers.columns = {{"case", true},
                            {"median " + scale.unit},
                            {"fastest block " + scale.unit},
                            {"slowest block " + scale.unit},
                            {"blocks"}};
  const bool tails = std::ranges::any_of(rows, [](const Row& row) { return row.of->tails.has_value(); });
  if (tails) figure.numbers.columns.insert(figure.numbers.columns.end(), {{"p95 of steps / median"}, {"p99"}});
  for (const Row& row : rows) {
    if (row.of->role == store::CaseRole::baseline) {
      const double at = chart.axis.at(row.of->step_seconds);
      chart.behind.line("reference", at, -1000, at, 1000);
    }
    chart.rows.push_back({report::label_of(result, *row.of), scale.print(row.of->step_seconds) + " " + scale.unit,
                          dots(chart.axis, row), verdict_class(*row.of)});
    const auto [fastest, slowest] = std::minmax_element(row.blocks.begin(), row.blocks.end());
    figure.numbers.rows.push_back({row.of->name, scale.print(row.of->step_seconds), scale.print(*fastest),
                                   scale.print(*slowest), std::to_string(row.blocks.size())});
    if (!tails) continue;
    for (double analysis::Tails::*tail : {&analysis::Tails::p95, &analysis::Tails::p99}) {
      figure.numbers.rows.back().push_back(row.of->tails ? report::Scale{}.print((*row.of->tails).*tail) : "");
    }
  }
  figure.title = "Step time of every case, the slowest first.";
  figure.caption =
      std::string("A dot is the median step time of one block") + process_words(result) +
      ". The bar is the median of the dots; "
      "the dashed line is the baseline's. Verdicts do not come from this picture: they compare blocks that ran close "
      "together, which share the state of the machine. An arrow: some blocks took longer than the drawing shows, and "
      "stand at its edge.";
  chart.draw(figure, fmt::format("{} cases, medians from {} to {} {}; all numbers are in the table below.", rows.size(),
                                 scale.print(rows.back().of->step_seconds), scale.print(rows.front().of->step_seconds),
                                 scale.unit));
  return figure;
}

}  // namespace harness::page
