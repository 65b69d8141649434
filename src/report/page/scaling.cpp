#include "report/page/charts.h"

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
  std::stable_sort(points.begin(), points.end(), [](const Point& a, const Point& b) { return a.ranks < b.ranks; });
  points.erase(
      std::unique(points.begin(), points.end(), [](const Point& a, const Point& b) { return a.ranks == b.ranks; }),
      points.end());
  for (Point& point : points) point.efficiency = point.rate / point.ranks / (points[0].rate / points[0].ranks);
  return points;
}

// Left to right over `top` … `bottom`, one line per neighbouring pair, a dot and its words at each point.
struct ScalingPanel {
  const Axis& x;
  double top, bottom, low, high;
  bool logarithmic;

  double y(double value) const {
    const auto place = [&](double v) { return logarithmic ? std::log(v) : v; };
    return bottom - (bottom - top) * (place(value) - place(low)) / (place(high) - place(low));
  }
  template <class Value, class Words>
  void draw(Svg& svg, const std::vector<Point>& points, const char* kind, Value value, Words words) const {
    for (std::size_t i = 1; i < points.size(); ++i) {
      svg.line(kind, x.at(points[i - 1].ranks), y(value(points[i - 1])), x.at(points[i].ranks), y(value(points[i])));
    }
    for (const Point& point : points) {
      const std::string text = words(point);
      if (text.empty()) continue;
      svg.circle("mark", x.at(point.ranks), y(value(point)), 4);
      svg.text_within("note", x.at(point.ranks), y(value(point)) - 10, text);
    }
  }
};

Svg curves(const std::vector<Point>& points, const Axis& x) {
  Svg svg;
  const double ideal_last = points[0].rate * points.back().ranks / points[0].ranks;
  double low = points[0].rate, high = ideal_last, max_efficiency = 1;
  for (const Point& point : points) {
    low = std::min(low, point.rate);
    high = std::max(high, point.rate);
    max_efficiency = std::max(max_efficiency, point.efficiency);
  }
  const ScalingPanel rate{x, 40, 220, low / 1.15, high * 1.05, true};
  const ScalingPanel efficiency{x, 292, 392, 0, max_efficiency, false};
  for (const double tick : x.ticks) {
    svg.line("grid", x.at(tick), 30, x.at(tick), 226);
    svg.line("grid", x.at(tick), 286, x.at(tick), 398);
    svg.text_within("tick", x.at(tick), 414, x.label(tick));
  }
  for (const double share : {0.0, 0.5, 1.0}) {
    svg.line(share == 1 ? "reference" : "grid", 0, efficiency.y(share), 1, efficiency.y(share));
    if (share < 1) svg.text("tick", 0, efficiency.y(share) - 4, Svg::Anchor::start, percent(share, 0));
  }
  svg.text("panel", 0, 14, Svg::Anchor::start, "tokens/s (log scale)");
  svg.text("panel", 0, 256, Svg::Anchor::start, "efficiency per rank");
  svg.line("reference", x.at(points[0].ranks), rate.y(points[0].rate), x.at(points.back().ranks), rate.y(ideal_last));
  rate.draw(
      svg, points, "curve", [](const Point& p) { return p.rate; },
      [](const Point& p) { return report::Scale{}.print(p.rate); });
  efficiency.draw(
      svg, points, "curve", [](const Point& p) { return p.efficiency; },
      [](const Point& p) { return percent(p.efficiency, 0); });
  svg.text("axis", 0.5, 432, Svg::Anchor::middle, "ranks");
  return svg;
}

std::optional<report::Numbers> grown(const store::Result& result, const std::vector<Point>& points,
                                     const analysis::Findings& findings) {
  std::vector<const analysis::Breakdown*> of;
  report::Table table;
  table.columns = {{"part of the step, ms", true}};
  for (const Point& point : points) {
    const analysis::StepFindings* found = findings.step_of(*point.of);
    if (found == nullptr) continue;
    of.push_back(&found->breakdown.mean);
    table.columns.push_back({plural(std::llround(point.ranks), "rank")});
  }
  if (of.size() < 2) return std::nullopt;
  table.columns.push_back({"growth"});
  struct Row {
    double growth;
    std::vector<report::Cell> cells;
  };
  std::vector<Row> rows;
  for (const Part part : all_parts) {
    Row row{(*of.back())[part].value_or(0) - (*of.front())[part].value_or(0), {name_of(part)}};
    bool any = false;
    for (const analysis::Breakdown* breakdown : of) {
      const std::optional<double> seconds = (*breakdown)[part];
      any = any || seconds.has_value();
      row.cells.push_back(seconds ? fmt::format("{:.2f}", 1e3 * *seconds) : "");
    }
    if (!any) continue;
    row.cells.push_back(fmt::format("{:+.2f}", 1e3 * row.growth));
    rows.push_back(std::move(row));
  }
  std::stable_sort(rows.begin(), rows.end(), [](const Row& a, const Row& b) { return a.growth > b.growth; });
  for (Row& row : rows) table.rows.push_back(std::move(row.cells));
  return report::Numbers{
      fmt::format("What grew with the ranks: parts of a {}, means over ranks, the largest growth first. Empty: no such "
                  "part.",
                  analysis::step_in_parts(result)),
      table, false};
}

}  // namespace

std::optional<Scaling> scaling(const store::Result& result, const analysis::Findings& findings) {
  const std::vector<Point> points = points_of(result, findings.summary);
  if (points.size() < 2) return std::nullopt;
  std::vector<double> sizes;
  for (const Point& point : points) sizes.push_back(point.ranks);
  const Axis x = logarithmic_axis(sizes, [](double value) { return fmt::format("{:.0f}", value); });

  Scaling out;
  out.curve.id = "scaling";
  out.curve.title = "Tokens per second and efficiency against the number of ranks.";
  out.curve.caption = fmt::format(
      "Dashed: the tokens/s per rank of the smallest size, {}. Efficiency is tokens/s per rank relative to "
      "that.{}",
      plural(std::llround(points[0].ranks), "rank"),
      result.ranks_are_gpus()
          ? ""
          : fmt::format(" On the {} backend ranks share cores, so fewer ranks do not mean less hardware.",
                        result.step_backend()));
  out.curve.drawing =
      curves(points, x).figure("scaling-drawing", 438, out.curve.title,
                               fmt::format("Efficiency at {:.0f} ranks: {}; all numbers are in the table below.",
                                           points.back().ranks, percent(points.back().efficiency)));
  out.curve.numbers.columns = {{"ranks", true},       {"case", true}, {"tokens/s"},
                               {"tokens/s per rank"}, {"efficiency"}, {"MFU"}};
  for (const Point& point : points) {
    out.curve.numbers.rows.push_back({fmt::format("{:.0f}", point.ranks), point.of->name,
                                      report::Scale{}.print(point.rate),
                                      report::Scale{}.print(point.rate / point.ranks), percent(point.efficiency),
                                      point.of->mfu ? percent(*point.of->mfu) : ""});
  }
  out.what_grew = grown(result, points, findings);
  return out;
}

}  // namespace harness::page
