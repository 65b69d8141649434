#include "report/page/page.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>
#include <optional>
#include <set>
#include <vector>

#include "base/units.h"
#include "report/page/drawing.h"
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

}  // namespace harness::page
