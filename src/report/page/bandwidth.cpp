#include "report/page/charts.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <functional>
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

// At most eight, the first and the last among them: words must not run into each other.
std::vector<double> sizes_to_mark(const Curves& curves) {
  std::set<double> sizes;
  for (const auto& [operation, curve] : curves) {
    for (const analysis::CaseSummary* row : curve) sizes.insert(row->rates->bytes);
  }
  constexpr std::size_t max_marks = 8;
  std::vector<double> all(sizes.begin(), sizes.end());
  if (all.size() <= max_marks) return all;
  std::vector<double> some;
  for (std::size_t i = 0; i < max_marks; ++i) some.push_back(all[i * (all.size() - 1) / (max_marks - 1)]);
  return some;
}

std::string in_gigabytes(double bytes_per_s) {
  return fmt::format("{:.4g}", bytes_per_s / 1e9);
}

// One of the two panels: what it shows of a case, over the size. Both axes are logarithmic, so that where latency
// rules a time is level and a bandwidth rises with the size, and where the links rule it is the other way round.
struct Panel {
  const char* title;
  double (*value)(const analysis::Rates&);
  std::optional<double> (*limit)(const analysis::Rates&);
  std::string (*label)(double);
};
constexpr double panel_height = 236, panel_top = 34, between_panels = 18;

double bandwidth_of(const analysis::Rates& rates) {
  return *rates.bus_bytes_per_s;
}
std::optional<double> limit_of(const analysis::Rates& rates) {
  return rates.limit_bytes_per_s;
}
double time_of(const analysis::Rates& rates) {
  return rates.operation_seconds;
}
// The time in which the links can carry it.
std::optional<double> least_time_of(const analysis::Rates& rates) {
  if (!rates.limit_bytes_per_s) return std::nullopt;
  return rates.operation_seconds * *rates.bus_bytes_per_s / *rates.limit_bytes_per_s;
}

constexpr std::array<Panel, 2> panels{
    {{"bus bandwidth, GB/s", bandwidth_of, limit_of, in_gigabytes},
     {"time of one operation", time_of, least_time_of, [](double seconds) { return show_seconds(seconds); }}}};

std::vector<double> values_of(const Curves& curves, const Panel& panel) {
  std::vector<double> values;
  for (const auto& [operation, curve] : curves) {
    for (const analysis::CaseSummary* row : curve) {
      values.push_back(panel.value(*row->rates));
      if (const auto limit = panel.limit(*row->rates)) values.push_back(*limit);
    }
  }
  return values;
}

// A line through the cases of a curve; where a case has no value, it is broken.
void draw_line(Svg& svg, const char* kind, const Curve& curve, const Axis& x,
               const std::function<std::optional<double>(const analysis::Rates&)>& height_of) {
  for (std::size_t i = 1; i < curve.size(); ++i) {
    const analysis::Rates &before = *curve[i - 1]->rates, &now = *curve[i]->rates;
    const auto from = height_of(before), to = height_of(now);
    if (from && to) svg.line(kind, x.at(before.bytes), *from, x.at(now.bytes), *to);
  }
}

void draw_panel(Svg& svg, const Panel& panel, const Curves& curves, const Axis& x, double top) {
  const double bottom = top + panel_height;
  const Axis up = decade_axis(values_of(curves, panel), panel.label);
  const auto y = [&](double value) { return bottom - (bottom - top - panel_top) * up.at(value); };
  svg.text("panel", 0, top + 10, Svg::Anchor::start, panel.title);
  for (const double tick : up.ticks) {
    svg.line("grid", 0, y(tick), 1, y(tick));
    svg.text("tick", 0, y(tick) - 4, Svg::Anchor::start, up.label(tick));
  }
  for (const double tick : x.ticks) {
    svg.line("grid", x.at(tick), top + panel_top, x.at(tick), bottom);
    svg.text_within("tick", x.at(tick), bottom + 16, x.label(tick));
  }
  std::size_t next = 0;
  std::set<std::string> limits;  // of the largest message, each said once
  for (const auto& [operation, curve] : curves) {
    const std::string swatch = swatches[next++ % swatches.size()];
    if (const auto limit = panel.limit(*curve.back()->rates); limit && limits.insert(panel.label(*limit)).second)
      svg.text("note", 1, y(*limit) - 4, Svg::Anchor::end, "limit " + panel.label(*limit));
    draw_line(svg, "reference", curve, x, [&](const analysis::Rates& rates) -> std::optional<double> {
      const auto limit = panel.limit(rates);
      return limit ? std::optional(y(*limit)) : std::nullopt;
    });
    draw_line(svg, ("curve " + swatch).c_str(), curve, x,
              [&](const analysis::Rates& rates) { return y(panel.value(rates)); });
    for (const analysis::CaseSummary* row : curve)
      svg.circle(("mark " + swatch).c_str(), x.at(row->rates->bytes), y(panel.value(*row->rates)), 4);
  }
}

Svg drawing_of(const Curves& curves, const Axis& x) {
  Svg svg;
  double top = 0;
  for (const Panel& panel : panels) {
    draw_panel(svg, panel, curves, x, top);
    top += panel_height + 16 + between_panels;
  }
  svg.text("axis", 0.5, top + 4, Svg::Anchor::middle, "size of the message");
  return svg;
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
      "size "
      "the fastest.",
      analysis::is_grid(result) ? "setting" : "collective");
  figure.caption += has_limit(curves) ? " Dashed: what the links allow." : " No limit of the links is known.";
  std::size_t next = 0;
  for (const auto& [operation, curve] : curves) {
    figure.legend.emplace_back(swatches[next++ % swatches.size()], operation);
  }
  figure.drawing = drawing_of(curves, x).figure(
      "bandwidth-drawing", panels.size() * (panel_height + 16 + between_panels) + 10, figure.title,
      fmt::format("At most {} GB/s; all numbers are in the table below.", in_gigabytes(highest_rate(curves))));
  return figure;
}

}  // namespace harness::page
