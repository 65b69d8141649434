#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <optional>
#include <set>
#include <vector>

#include "base/text.h"
#include "base/units.h"
#include "config/registry.h"
#include "report/page/page.h"
#include "report/words.h"

namespace harness::page {
namespace {

constexpr std::array<const char*, 5> swatches{"k-matmul", "k-data", "k-optimizer", "k-attention", "k-world"};

using Curve = std::map<double, const analysis::Rates*>;  // of one collective, in a grid of one setting; by size
using Curves = std::map<std::string, Curve>;

// Where several cases of one line have one size (the baseline and its copy), the line shows the fastest.
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

// Not all of many: words must not run into each other.
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

std::string in_gigabytes(double bytes_per_s) {
  return fmt::format("{:.4g}", bytes_per_s / 1e9);
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

std::optional<report::Figure> bandwidth_chart(const store::Result& result, const analysis::Summary& summary) {
  const Curves curves = curves_of(result, summary);
  if (curves.empty()) return std::nullopt;
  report::Figure figure;
  figure.id = "bandwidth";
  figure.title = "Bus bandwidth against the size of the message.";
  LineChart chart{.title = "bus bandwidth, GB/s", .x_title = "size of the message", .x = {}, .up = {}, .lines = {}};
  chart.x = logarithmic_axis(sizes_to_mark(curves), [](double bytes) { return show_bytes(bytes); });
  std::vector<double> values;
  std::set<std::string> limits;  // of the largest message, each said once
  for (const auto& [name, curve] : curves) {
    const std::string swatch = swatches[figure.legend.size() % swatches.size()];
    figure.legend.emplace_back(swatch, name);
    LineChart::Line limit{"reference", {}}, line{"curve " + swatch, {}, "mark " + swatch};
    for (const auto& [bytes, rates] : curve) {
      line.points.emplace_back(bytes, rates->bus_bytes_per_s);
      limit.points.emplace_back(bytes, rates->limit_bytes_per_s);
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
  chart.draw(figure, fmt::format("At most {} GB/s; all numbers are in the table below.",
                                 in_gigabytes(*std::ranges::max_element(values))));
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
                                   percent(point.efficiency), point.of->mfu ? percent(*point.of->mfu) : ""});
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
