#include "report/page/charts.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>
#include <set>
#include <vector>

#include "base/units.h"
#include "report/page/axis.h"
#include "report/page/svg.h"
#include "report/scale.h"

namespace harness::page {
namespace {

struct Line {
  const char* swatch;
  const char* curve;
  const char* mark;
};
constexpr std::array<Line, 5> lines{{{"k-matmul", "curve k-matmul", "mark k-matmul"},
                                     {"k-data", "curve k-data", "mark k-data"},
                                     {"k-optimizer", "curve k-optimizer", "mark k-optimizer"},
                                     {"k-attention", "curve k-attention", "mark k-attention"},
                                     {"k-world", "curve k-world", "mark k-world"}}};

using Curve = std::vector<const analysis::CaseSummary*>;  // of one collective, by size
using Curves = std::map<std::string, Curve>;

// Of several cases of one size (another algorithm, the baseline's copy) the line shows the one that reaches most.
Curves curves_of(const analysis::Summary& summary) {
  Curves curves;
  for (const analysis::CaseSummary& row : summary.cases) {
    if (row.rates && row.rates->bus_bytes_per_s) curves[row.rates->operation].push_back(&row);
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

std::set<double> limits_of(const Curves& curves) {
  std::set<double> limits;
  for (const auto& [operation, curve] : curves) {
    for (const analysis::CaseSummary* row : curve) {
      if (row->rates->limit_bytes_per_s) limits.insert(*row->rates->limit_bytes_per_s);
    }
  }
  return limits;
}

double highest_rate(const Curves& curves) {
  double high = 0;
  for (const auto& [operation, curve] : curves) {
    for (const analysis::CaseSummary* row : curve) high = std::max(high, *row->rates->bus_bytes_per_s);
  }
  return high;
}

std::string in_gigabytes(double bytes_per_s) {
  return fmt::format("{:.4g}", bytes_per_s / 1e9);
}

// A limit far above what was reached would press the lines to the ground.
constexpr double max_beyond = 4;

Svg drawing_of(const Curves& curves, const Axis& x) {
  constexpr double top = 14, bottom = 250;
  double high = highest_rate(curves);
  const double reached = high;
  const std::set<double> limits = limits_of(curves);
  for (const double limit : limits) {
    if (limit <= max_beyond * reached) high = std::max(high, limit);
  }
  const Axis up = round_axis(0, high / 1e9, 5, [](double value) { return fmt::format("{:.4g}", value); });
  const auto y = [&](double bytes_per_s) { return bottom - (bottom - top) * (bytes_per_s / 1e9) / up.high; };
  Svg svg;
  for (const double tick : up.ticks) {
    svg.line("grid", 0, y(1e9 * tick), 1, y(1e9 * tick));
    svg.text("tick", 0, y(1e9 * tick) - 4, Svg::Anchor::start, up.label(tick));
  }
  for (const double tick : x.ticks) {
    svg.line("grid", x.at(tick), top, x.at(tick), bottom);
    svg.text_within("tick", x.at(tick), bottom + 16, x.label(tick));
  }
  for (const double limit : limits) {
    if (limit > max_beyond * reached) continue;
    svg.line("reference", 0, y(limit), 1, y(limit));
    svg.text("note", 1, y(limit) - 4, Svg::Anchor::end, "limit " + in_gigabytes(limit));
  }
  std::size_t next = 0;
  for (const auto& [operation, curve] : curves) {
    const Line& line = lines[next++ % lines.size()];
    const analysis::CaseSummary* before = nullptr;
    for (const analysis::CaseSummary* row : curve) {
      const double at = x.at(row->rates->bytes), height = y(*row->rates->bus_bytes_per_s);
      if (before != nullptr) {
        svg.line(line.curve, x.at(before->rates->bytes), y(*before->rates->bus_bytes_per_s), at, height);
      }
      before = row;
    }
    for (const analysis::CaseSummary* row : curve) {
      svg.circle(line.mark, x.at(row->rates->bytes), y(*row->rates->bus_bytes_per_s), 4);
    }
  }
  svg.text("axis", 0.5, bottom + 36, Svg::Anchor::middle, "size of the message (log scale)");
  return svg;
}

report::Table numbers_of(const Curves& curves) {
  std::vector<double> seconds;
  for (const auto& [operation, curve] : curves) {
    for (const analysis::CaseSummary* row : curve) seconds.push_back(row->rates->operation_seconds);
  }
  const report::Scale scale = report::scale_of_seconds(seconds);
  report::Table table;
  table.columns = {{"collective", true}, {"size"},       {"time " + scale.unit}, {"algbw GB/s"},
                   {"busbw GB/s"},       {"limit GB/s"}, {"case", true}};
  for (const auto& [operation, curve] : curves) {
    for (const analysis::CaseSummary* row : curve) {
      const analysis::Rates& rates = *row->rates;
      table.rows.push_back({operation, show_bytes(rates.bytes), scale.print(rates.operation_seconds),
                            in_gigabytes(rates.algorithm_bytes_per_s), in_gigabytes(*rates.bus_bytes_per_s),
                            rates.limit_bytes_per_s ? in_gigabytes(*rates.limit_bytes_per_s) : "", row->name});
    }
  }
  return table;
}

}  // namespace

std::optional<report::Figure> bandwidth_chart(const analysis::Summary& summary) {
  const Curves curves = curves_of(summary);
  if (curves.empty()) return std::nullopt;
  const Axis x = logarithmic_axis(sizes_to_mark(curves), [](double bytes) { return show_bytes(bytes); });
  report::Figure figure;
  figure.id = "bandwidth";
  figure.title = "Bus bandwidth against the size of the message, GB/s.";
  figure.caption =
      "A line per collective; a dot is the median over the blocks of a case, of several of one size the fastest.";
  const std::set<double> limits = limits_of(curves);
  const double reached = highest_rate(curves);
  if (!limits.empty() && *limits.begin() <= max_beyond * reached) figure.caption += " Dashed: what the links allow.";
  if (!limits.empty() && *limits.rbegin() > max_beyond * reached) {
    figure.caption +=
        fmt::format(" The links allow {} GB/s, which is above the drawing.", in_gigabytes(*limits.rbegin()));
  }
  if (limits.empty()) figure.caption += " No limit of the links is known.";
  std::size_t next = 0;
  for (const auto& [operation, curve] : curves) {
    figure.legend.emplace_back(lines[next++ % lines.size()].swatch, operation);
  }
  figure.drawing = drawing_of(curves, x).figure(
      "bandwidth-drawing", 292, figure.title,
      fmt::format("At most {} GB/s; all numbers are in the table below.", in_gigabytes(reached)));
  figure.numbers = numbers_of(curves);
  return figure;
}

}  // namespace harness::page
