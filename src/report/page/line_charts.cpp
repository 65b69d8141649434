#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <optional>
#include <set>
#include <vector>

#include "analysis/breakdown.h"
#include "base/text.h"
#include "base/units.h"
#include "config/registry.h"
#include "report/page/page.h"
#include "report/words.h"

namespace harness::page {
namespace {

constexpr std::array<const char*, 5> swatches{"k-matmul", "k-data", "k-optimizer", "k-attention", "k-world"};

using Curve = std::vector<const analysis::CaseSummary*>;  // of one collective, in a grid of one setting; by size
using Curves = std::map<std::string, Curve>;

// The line that a case is on.
std::string line_of(const store::Result& result, const analysis::CaseSummary& row) {
  if (!analysis::is_grid(result)) return row.rates->operation;
  return row.role == store::CaseRole::change ? report::setting_of(result, row) : "baseline";
}

// Where several cases of one line have one size (the baseline and its copy), the line shows the fastest.
Curves curves_of(const store::Result& result, const analysis::Summary& summary) {
  Curves curves;
  for (const analysis::CaseSummary& row : summary.cases) {
    if (row.rates && row.rates->bus_bytes_per_s) curves[line_of(result, row)].push_back(&row);
  }
  const auto before = [](const analysis::CaseSummary* a, const analysis::CaseSummary* b) {
    if (a->rates->bytes != b->rates->bytes) return a->rates->bytes < b->rates->bytes;
    return *a->rates->bus_bytes_per_s > *b->rates->bus_bytes_per_s;
  };
  const auto same_size = [](const analysis::CaseSummary* a, const analysis::CaseSummary* b) {
    return a->rates->bytes == b->rates->bytes;
  };
  for (auto& [operation, curve] : curves) {
    std::ranges::sort(curve, before);
    curve.erase(std::unique(curve.begin(), curve.end(), same_size), curve.end());
  }
  return curves;
}

// Not all of many: words must not run into each other.
std::vector<double> sizes_to_mark(const Curves& curves) {
  std::set<double> sizes;
  for (const auto& [operation, curve] : curves) {
    for (const analysis::CaseSummary* row : curve) sizes.insert(row->rates->bytes);
  }
  const std::vector<double> all(sizes.begin(), sizes.end());
  std::vector<double> some;
  for (const std::size_t i : evenly_chosen(all.size())) some.push_back(all[i]);
  return some;
}

std::string in_gigabytes(double bytes_per_s) {
  return fmt::format("{:.4g}", bytes_per_s / 1e9);
}

// One of the two panels: its number of a case, over the size. Both axes are logarithmic, so that where latency rules a
// time is level and a bandwidth rises with the size, and where the links rule it is the other way round.
struct Shown {
  const char* title;
  double (*value)(const analysis::Rates&);
  std::optional<double> (*limit)(const analysis::Rates&);
  std::string (*label)(double);
};

constexpr std::array<Shown, 2> both{{
    {"bus bandwidth, GB/s", [](const analysis::Rates& rates) { return *rates.bus_bytes_per_s; },
     [](const analysis::Rates& rates) { return rates.limit_bytes_per_s; }, in_gigabytes},
    {"time of one operation", [](const analysis::Rates& rates) { return rates.operation_seconds; },
     [](const analysis::Rates& rates) -> std::optional<double> {  // in which the links can carry it
       if (!rates.limit_bytes_per_s) return std::nullopt;
       return rates.operation_seconds * *rates.bus_bytes_per_s / *rates.limit_bytes_per_s;
     },
     show_seconds},
}};

LinePanel panel_of(const Curves& curves, const Shown& shown) {
  constexpr double height = 236;
  LinePanel panel{.title = shown.title, .up = {}, .height = height, .lines = {}};
  std::vector<double> values;
  std::size_t next = 0;
  std::set<std::string> limits;  // of the largest message, each said once
  for (const auto& [operation, curve] : curves) {
    const std::string swatch = swatches[next++ % swatches.size()];
    LinePanel::Line limit{"reference", {}}, line{"curve " + swatch, {}, "mark " + swatch};
    for (const analysis::CaseSummary* row : curve) {
      const analysis::Rates& rates = *row->rates;
      line.points.emplace_back(rates.bytes, shown.value(rates));
      limit.points.emplace_back(rates.bytes, shown.limit(rates));
      values.push_back(shown.value(rates));
      if (const auto& known = limit.points.back().second) values.push_back(*known);
    }
    if (const auto& known = limit.points.back().second; known && limits.insert(shown.label(*known)).second)
      panel.notes.emplace_back(*known, "limit " + shown.label(*known));
    panel.lines.insert(panel.lines.end(), {std::move(limit), std::move(line)});
  }
  panel.up = decade_axis(values, shown.label);
  return panel;
}

double highest_rate(const Curves& curves) {
  double high = 0;
  for (const auto& [operation, curve] : curves) {
    for (const analysis::CaseSummary* row : curve) high = std::max(high, *row->rates->bus_bytes_per_s);
  }
  return high;
}

bool has_limit(const Curves& curves) {
  return std::ranges::any_of(curves, [](const auto& named) {
    return std::ranges::any_of(named.second, [](const auto* row) { return row->rates->limit_bytes_per_s.has_value(); });
  });
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

std::optional<report::Figure> bandwidth_chart(const store::Result& result, const analysis::Summary& summary) {
  const Curves curves = curves_of(result, summary);
  if (curves.empty()) return std::nullopt;
  const Axis x = logarithmic_axis(sizes_to_mark(curves), [](double bytes) { return show_bytes(bytes); });
  report::Figure figure;
  figure.id = "bandwidth";
  figure.title = "Bus bandwidth and time against the size of the message.";
  figure.caption = fmt::format(
      "All scales are logarithmic. A line per {}; a dot is the median over the blocks of a case, of several of one "
      "size the fastest.",
      analysis::is_grid(result) ? "setting" : "collective");
  figure.caption += has_limit(curves) ? " Dashed: what the links allow." : " No limit of the links is known.";
  std::size_t next = 0;
  for (const auto& [operation, curve] : curves) {
    figure.legend.emplace_back(swatches[next++ % swatches.size()], operation);
  }
  std::vector<LinePanel> panels;
  for (const Shown& shown : both) panels.push_back(panel_of(curves, shown));
  Svg svg;
  const double height = draw_panels(svg, x, panels, "size of the message");
  figure.drawing = svg.figure(
      "bandwidth-drawing", height, figure.title,
      fmt::format("At most {} GB/s; all numbers are in the table below.", in_gigabytes(highest_rate(curves))));
  return figure;
}

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
