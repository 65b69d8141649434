#include "report/page/page.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "analysis/breakdown.h"
#include "base/text.h"
#include "config/registry.h"
#include "report/page/drawing.h"
#include "report/words.h"

namespace harness::page {
namespace {

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

std::vector<LinePanel> panels_of(const std::vector<Point>& points) {
  const double first = points.front().ranks, last = points.back().ranks;
  const double ideal_last = points[0].rate * last / first;
  LinePanel rate{.title = "tokens/s (log scale)", .up = {}, .height = 220, .lines = {}};
  LinePanel efficiency{.title = "efficiency per rank", .up = {}, .height = 140, .lines = {}};
  rate.lines = {{"reference", {{first, points[0].rate}, {last, ideal_last}}}, {"curve", {}, "mark"}};
  efficiency.lines = {{"reference", {{first, 1}, {last, 1}}}, {"curve", {}, "mark"}};
  rate.up = {.low = points[0].rate, .high = ideal_last, .margin = 0.02, .logarithmic = true, .ticks = {}, .label = {}};
  efficiency.up = {.low = 0, .high = 1, .margin = 0, .logarithmic = false, .ticks = {0, 0.5}, .label = {}};
  efficiency.up.label = [](double share) { return percent(share, 0); };
  for (const Point& point : points) {
    rate.up.low = std::min(rate.up.low, point.rate / 1.15);
    rate.up.high = std::max(rate.up.high, point.rate * 1.05);
    efficiency.up.high = std::max(efficiency.up.high, point.efficiency);
    rate.lines[1].points.emplace_back(point.ranks, point.rate);
    rate.lines[1].notes.push_back(report::Scale{}.print(point.rate));
    efficiency.lines[1].points.emplace_back(point.ranks, point.efficiency);
    efficiency.lines[1].notes.push_back(percent(point.efficiency, 0));
  }
  return {std::move(rate), std::move(efficiency)};
}

std::optional<report::Numbers> grown(const store::Result& result, const std::vector<Point>& points,
                                     const analysis::Findings& findings) {
  std::vector<const analysis::Breakdown*> of;
  report::Table table{{{"part of the step, ms", true}}, {}};
  for (const Point& point : points) {
    const analysis::StepFindings* found = findings.step_of(*point.of);
    if (found == nullptr) continue;
    of.push_back(&found->breakdown.mean);
    table.columns.push_back({plural(std::llround(point.ranks), "rank")});
  }
  if (of.size() < 2) return std::nullopt;
  table.columns.push_back({"growth"});
  std::vector<std::pair<double, std::vector<report::Cell>>> rows;  // by growth
  for (const Part part : all_parts) {
    const double growth = (*of.back())[part].value_or(0) - (*of.front())[part].value_or(0);
    std::vector<report::Cell> cells{name_of(part)};
    for (const analysis::Breakdown* breakdown : of) {
      const std::optional<double> seconds = (*breakdown)[part];
      cells.emplace_back(seconds ? fmt::format("{:.2f}", 1e3 * *seconds) : "");
    }
    if (std::all_of(cells.begin() + 1, cells.end(), [](const report::Cell& cell) { return cell.text.empty(); }))
      continue;
    cells.emplace_back(fmt::format("{:+.2f}", 1e3 * growth));
    rows.emplace_back(growth, std::move(cells));
  }
  std::ranges::stable_sort(rows, std::greater(), [](const auto& row) { return row.first; });
  for (auto& [growth, cells] : rows) table.rows.push_back(std::move(cells));
  return report::Numbers{
      fmt::format("What grew with the ranks: parts of a {}, means over ranks, the largest growth first. Empty: no such "
                  "part.",
                  analysis::step_in_parts(result)),
      table, false};
}

}  // namespace

report::Section scaling_section(const store::Result& result, const analysis::Findings& findings) {
  report::Section section{"scaling-section", "Scaling", {}};
  const std::vector<Point> points = points_of(result, findings.summary);
  if (points.size() < 2) return section;
  std::vector<double> sizes;
  for (const Point& point : points) sizes.push_back(point.ranks);
  const Axis x = logarithmic_axis(sizes, [](double value) { return fmt::format("{:.0f}", value); });

  report::Figure curve;
  curve.id = "scaling";
  curve.title = "Tokens per second and efficiency against the number of ranks.";
  curve.caption = fmt::format(
      "Dashed: the tokens/s per rank of the smallest size, {}. Efficiency is tokens/s per rank relative to that.",
      plural(std::llround(points[0].ranks), "rank"));
  if (!result.ranks_are_gpus()) {
    curve.caption += fmt::format(" On the {} backend ranks share cores, so fewer ranks do not mean less hardware.",
                                 result.step_backend());
  }
  Svg svg;
  const double height = draw_panels(svg, x, panels_of(points), "ranks");
  curve.drawing = svg.figure("scaling-drawing", height, curve.title,
                             fmt::format("Efficiency at {:.0f} ranks: {}; all numbers are in the table below.",
                                         points.back().ranks, percent(points.back().efficiency)));
  curve.numbers.columns = {{"ranks", true},       {"case", true}, {"tokens/s"},
                           {"tokens/s per rank"}, {"efficiency"}, {"MFU"}};
  for (const Point& point : points) {
    curve.numbers.rows.push_back({fmt::format("{:.0f}", point.ranks), point.of->name, report::Scale{}.print(point.rate),
                                  report::Scale{}.print(point.rate / point.ranks), percent(point.efficiency),
                                  point.of->mfu ? percent(*point.of->mfu) : ""});
  }
  section.add(std::move(curve));
  section.add(grown(result, points, findings));
  return section;
}

}  // namespace harness::page
