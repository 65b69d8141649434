#include "report/reached.h"

#include <fmt/format.h>

#include <algorithm>
#include <vector>

#include "analysis/comparable.h"
#include "base/units.h"
#include "config/registry.h"
#include "report/metrics.h"

namespace harness::report {
namespace {

struct Point {
  std::string size;
  double rate = 0;
  const analysis::CaseSummary* row = nullptr;
};

// What an operation is about: the bandwidth of a link, the FLOP of a rank, or where it computes nothing its bytes.
double rate_of(Measured measured, const analysis::CaseSummary& row) {
  if (measured == Measured::collective) return row.rates->bus_bytes_per_s.value_or(0);
  return row.flops_per_rank > 0 ? row.flops_per_rank : row.rates->algorithm_bytes_per_s;
}

// "4 MiB"; what it is in the model's step, where that is known.
std::string size_of(const store::Result& result, const analysis::CaseSummary& row) {
  const store::ResultPoint* point = result.find_point(row.case_index);
  if (point != nullptr && !point->uses.empty()) return point->uses;
  if (row.role == store::CaseRole::change) return result.at(row).value;
  const auto of_size = [](const store::ResultCase& other) {
    return config::purpose_of(other.variable) == config::Purpose::size;
  };
  const auto sized = std::ranges::find_if(result.cases, of_size);
  const std::string_view size = sized == result.cases.end() ? "" : result.setting(result.at(row), sized->variable);
  return size.empty() ? "the baseline's size" : std::string(size);
}

std::string in_words(Measured measured, double rate, const analysis::CaseSummary& row) {
  const std::vector<double> values{rate};
  if (measured != Measured::collective && row.flops_per_rank > 0) {
    const Scale scale = scale_of_flops(values);
    return fmt::format("{} {}", scale.print(rate), scale.unit);
  }
  return fmt::format("{:.3g} GB/s", rate / 1e9);
}

}  // namespace

std::string what_was_reached(const store::Result& result, const analysis::Summary& summary) {
  const Measured measured = measured_by(result);
  if (measured == Measured::training) return "";
  std::vector<Point> points;  // the baseline and its other sizes
  for (const analysis::CaseSummary& row : summary.cases) {
    const bool of_size =
        row.role == store::CaseRole::baseline || config::purpose_of(result.at(row).variable) == config::Purpose::size;
    if (!of_size || !row.rates || row.rates->impossible) continue;
    points.push_back({size_of(result, row), rate_of(measured, row), &row});
  }
  if (points.empty()) return "";
  const Point& most = *std::ranges::max_element(points, {}, &Point::rate);
  const Point& least =
      *std::ranges::min_element(points, {}, [](const Point& point) { return point.row->rates->operation_seconds; });
  const auto rate = [&](const Point& point) { return in_words(measured, point.rate, *point.row); };
  const std::string what = measured == Measured::collective ? "busbw" : "rate";
  std::string text = points.size() == 1 ? "" : "Most " + what + ": ";
  text += fmt::format("{} at {}", rate(most), most.size);
  if (most.row->role != store::CaseRole::baseline && points.front().row->role == store::CaseRole::baseline) {
    text += fmt::format("; {} at {}, the baseline", rate(points.front()), points.front().size);
  }
  return text + fmt::format("; {} takes {}.", least.size, show_seconds(least.row->rates->operation_seconds));
}

}  // namespace harness::report
