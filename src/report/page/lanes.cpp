#include "report/page/drawing.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>
#include <set>

#include "report/words.h"

namespace harness::page {
namespace {

constexpr unsigned cells = 2000;

struct Kind {
  const char* swatch;
  const char* name;
};
// In the order of OperationKind.
constexpr std::array<Kind, 11> kinds{{{"k-matmul", "matrix products"},
                                      {"k-attention", "attention"},
                                      {"k-compute", "other computation"},
                                      {"k-optimizer", "optimizer"},
                                      {"k-tensor", "tensor-parallel communication"},
                                      {"k-data", "data-parallel communication"},
                                      {"k-pipeline", "pipeline communication"},
                                      {"k-world", "closing all-reduce"},
                                      {"k-waiting", "waiting for other ranks"},
                                      {"k-everyone", "communication of all ranks"},
                                      {"k-copy", "copies"}}};

struct Lane {
  std::string label;
  double busy_s = 0;
  std::vector<std::array<float, kinds.size()>> covered = std::vector<std::array<float, kinds.size()>>(cells);

  void add(std::size_t kind, double from, double to) {  // in cells
    from = std::clamp(from, 0.0, static_cast<double>(cells));
    to = std::clamp(to, from, static_cast<double>(cells));
    for (auto cell = static_cast<unsigned>(from); cell < cells && cell < to; ++cell) {
      const double part = std::min<double>(to, cell + 1) - std::max<double>(from, cell);
      covered[cell][kind] += static_cast<float>(part);
    }
  }
  // The kind that took most of a cell; nothing where less than half of it was used.
  std::optional<std::size_t> shown(std::size_t cell) const {
    const auto& parts = covered[cell];
    float sum = 0;
    std::size_t largest = 0;
    for (std::size_t kind = 0; kind < parts.size(); ++kind) {
      sum += parts[kind];
      if (parts[kind] > parts[largest]) largest = kind;
    }
    if (sum < 0.5F) return std::nullopt;
    return largest;
  }
  Svg drawing() const {
    std::vector<std::string> classes;
    for (const Kind& kind : kinds) classes.emplace_back(kind.swatch);
    Svg svg;
    svg.stretched(0, 1, -8, 16, cells, 1,
                  cell_paths(1, cells, classes, [&](std::size_t /*row*/, std::size_t cell) { return shown(cell); }));
    return svg;
  }
};

std::size_t index_of(OperationKind kind) {
  return static_cast<std::size_t>(kind);
}

}  // namespace

std::vector<std::size_t> evenly_chosen(std::size_t all) {
  constexpr std::size_t most = 8;
  std::vector<std::size_t> some;
  for (std::size_t i = 0; i < std::min(all, most); ++i) some.push_back(all <= most ? i : i * (all - 1) / (most - 1));
  return some;
}

report::Figure lanes_chart(const std::vector<DrawnOperation>& operations, double step_s, double length_s,
                           const std::string& id, const std::string& title) {
  std::map<std::pair<std::int64_t, std::string>, Lane> lanes;  // by rank and track, computation first
  std::map<std::pair<std::int64_t, std::size_t>, std::pair<double, int>> by_kind;
  for (const DrawnOperation& x : operations) {
    Lane& lane = lanes[{x.rank, x.track == "compute" ? "" : x.track}];
    if (lane.label.empty()) lane.label = fmt::format("rank {} {}", x.rank, x.track);
    const auto add = [&](OperationKind kind, double start_s, double end_s) {
      lane.busy_s += end_s - start_s;
      lane.add(index_of(kind), start_s / length_s * cells, end_s / length_s * cells);
      auto& [total_s, count] = by_kind[{x.rank, index_of(kind)}];
      total_s += end_s - start_s;
      ++count;
    };
    const double goes_on_s = x.waited_s > 0 ? std::min(x.start_s + x.waited_s, x.end_s) : x.start_s;  // NaN: unknown
    if (goes_on_s > x.start_s) add(OperationKind::waiting, x.start_s, goes_on_s);
    add(x.kind, goes_on_s, x.end_s);
  }
  const report::Scale scale = report::scale_of_seconds(std::array{length_s});
  RowChart chart;
  chart.kind = "thin";
  chart.axis = linear_axis(0, length_s / scale.factor, 6, {});
  const int decimals = tick_decimals(tick_distance(length_s / scale.factor, 6));
  chart.axis.margin = 0;
  chart.axis.label = [decimals](double value) { return fmt::format("{:.{}f}", value, decimals); };
  chart.axis_title = "time since the step began, " + scale.unit;
  std::int64_t before = -1;
  for (const auto& [key, lane] : lanes) {
    const bool first = before >= 0 && key.first != before;
    chart.rows.push_back({lane.label, percent(lane.busy_s / step_s, 0), lane.drawing(), first ? "gap" : ""});
    before = key.first;
  }

  report::Figure figure;
  figure.id = id;
  figure.title = title;
  figure.numbers.columns = {{"rank"}, {"kind", true}, {"time " + scale.unit}, {"share of the step"}, {"operations"}};
  std::set<std::size_t> present;
  for (const auto& [key, value] : by_kind) {
    present.insert(key.second);
    figure.numbers.rows.push_back({std::to_string(key.first), kinds[key.second].name, scale.print(value.first),
                                   percent(value.first / step_s), std::to_string(value.second)});
  }
  for (const std::size_t kind : present) figure.legend.emplace_back(kinds[kind].swatch, kinds[kind].name);
  const bool has_waiting = present.contains(index_of(OperationKind::waiting));
  figure.caption = fmt::format(
      "On the right: how much of the step it was busy{}. Each lane is drawn in {} cells, in the colour of what took "
      "most of each.",
      has_waiting ? ", waiting included" : "", cells);
  chart.draw(figure, fmt::format("{} lanes over {} {}; the time by kind is in the table below.", lanes.size(),
                                 scale.print(step_s), scale.unit));
  return figure;
}

}  // namespace harness::page
