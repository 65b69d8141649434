#include "report/page/charts.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>
#include <set>

#include "analysis/breakdown.h"
#include "analysis/profiled_step.h"
#include "report/page/row_chart.h"
#include "report/scale.h"

namespace harness::page {
namespace {

constexpr std::size_t max_ranks = 8;
constexpr unsigned cells = 2000;

struct Kind {
  const char* swatch;
  const char* name;
};
constexpr std::array<Kind, 10> kinds{{{"k-matmul", "matrix products"},
                                      {"k-attention", "attention"},
                                      {"k-compute", "other computation"},
                                      {"k-optimizer", "optimizer"},
                                      {"k-tensor", "tensor-parallel communication"},
                                      {"k-data", "data-parallel communication"},
                                      {"k-pipeline", "pipeline communication"},
                                      {"k-world", "closing all-reduce"},
                                      {"k-waiting", "waiting for other ranks"},
                                      {"k-everyone", "communication of all ranks"}}};
constexpr std::size_t waiting_kind = 8;

std::size_t kind_of(const store::ResultInterval& row) {
  if (row.kind == "adamw") return 3;  // on whatever stream
  if (row.stream == "tensor") return 4;
  if (row.stream == "data" || row.stream == "gather" || row.stream == "nodes") return 5;
  if (row.stream == "pipeline") return 6;
  if (row.stream != "compute") return row.phase == analysis::closing_phase ? 7 : 9;
  if (row.kind == "matmul") return 0;
  if (row.kind.starts_with("attention")) return 1;
  return 2;
}

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
    std::array<std::string, kinds.size()> paths;
    for (std::size_t cell = 0; cell < cells;) {
      const std::optional<std::size_t> kind = shown(cell);
      std::size_t end = cell + 1;
      while (end < cells && shown(end) == kind) ++end;
      if (kind) paths[*kind] += fmt::format("M{} 0h{}v1h-{}z", cell, end - cell, end - cell);
      cell = end;
    }
    std::string all;
    for (std::size_t k = 0; k < kinds.size(); ++k) {
      if (!paths[k].empty()) all += fmt::format(R"(<path class="{}" d="{}"/>)", kinds[k].swatch, paths[k]);
    }
    Svg svg;
    svg.stretched(0, 1, -8, 16, cells, 1, all);
    return svg;
  }
};

struct Collected {
  double step_s = 0;
  std::size_t ranks = 0, roles = 0;  // with a timeline: all of them
  bool one_clock = false;
  std::vector<std::int32_t> shown;                                                 // ranks
  std::map<std::pair<std::int32_t, std::string>, Lane> lanes;                      // by rank and track, compute first
  std::map<std::pair<std::int32_t, std::size_t>, std::pair<double, int>> by_kind;  // by rank and kind
};

// Ranks from first to last, evenly, if there are more than fit.
std::vector<std::int32_t> chosen(const std::set<std::int32_t>& ranks) {
  std::vector<std::int32_t> all(ranks.begin(), ranks.end());
  if (all.size() <= max_ranks) return all;
  std::vector<std::int32_t> some;
  for (std::size_t i = 0; i < max_ranks; ++i) some.push_back(all[i * (all.size() - 1) / (max_ranks - 1)]);
  return some;
}

Collected collect(const store::Result& result, int case_index, double length_s) {
  Collected out;
  std::set<std::int32_t> ranks, roles;
  const analysis::DrawnStep step = analysis::drawn_step(result, case_index);
  out.one_clock = step.one_clock;
  for (const analysis::DrawnInterval& x : step.intervals) {
    ranks.insert(x.row->rank);
    roles.insert(x.row->role);
    out.step_s = std::max(out.step_s, x.end_s);
  }
  if (!(out.step_s > 0)) return out;
  out.ranks = ranks.size();
  out.roles = roles.size();
  out.shown = chosen(ranks);
  for (const analysis::DrawnInterval& x : step.intervals) {
    const store::ResultInterval& row = *x.row;
    if (std::find(out.shown.begin(), out.shown.end(), row.rank) == out.shown.end()) continue;
    const std::string order = x.track == "compute" ? "" : x.track;
    Lane& lane = out.lanes[{row.rank, order}];
    if (lane.label.empty()) lane.label = fmt::format("rank {} {}", row.rank, x.track);
    const auto add = [&](std::size_t kind, double start_s, double end_s) {
      lane.busy_s += end_s - start_s;
      lane.add(kind, start_s / length_s * cells, end_s / length_s * cells);
      auto& [total, operations] = out.by_kind[{row.rank, kind}];
      total += end_s - start_s;
      ++operations;
    };
    const double waited_s = row.waiting_s + row.bubble_s;  // NaN: not known
    const double goes_on_s = waited_s > 0 ? std::min(x.start_s + waited_s, x.end_s) : x.start_s;
    if (goes_on_s > x.start_s) add(waiting_kind, x.start_s, goes_on_s);
    add(kind_of(row), goes_on_s, x.end_s);
  }
  return out;
}

std::string caption_of(const Collected& found, bool has_waiting) {
  const bool one_of_role = found.ranks == found.roles;
  std::string lanes = "A lane is a stream of one rank.";
  if (found.ranks > found.shown.size()) {
    lanes = fmt::format("A lane is a stream of one rank, for {} of {} {} from the first to the last.",
                        found.shown.size(), found.ranks, one_of_role ? "roles" : "ranks");
  } else if (found.roles > 1 && one_of_role) {
    lanes = "A lane is a stream of one rank, for one rank of each role (ranks of a role run the same operations).";
  }
  const char* clock = "";
  if (found.ranks > 1) {
    clock = found.one_clock ? " The lanes share a clock: the closing all-reduce ends at once on all ranks."
                            : " Each rank counts from the start of its own step.";
  }
  return fmt::format(
      "{}{} On the right: how much of the step it was busy{}. Each lane is drawn in {} cells, in the colour of what "
      "took most of each.",
      lanes, clock, has_waiting ? ", waiting included" : "", cells);
}

}  // namespace

double timeline_length(const store::Result& result, int case_index) {
  double length = 0;
  for (const analysis::DrawnInterval& x : analysis::drawn_step(result, case_index).intervals) {
    length = std::max(length, x.end_s);
  }
  return length;
}

std::optional<report::Figure> timeline_chart(const store::Result& result, int case_index, const std::string& id,
                                             double length_s) {
  const Collected found = collect(result, case_index, length_s);
  if (found.lanes.empty()) return std::nullopt;
  const std::string& name = result.case_at(case_index).name;
  const report::Scale scale = report::scale_of_seconds(std::array{length_s});
  RowChart chart;
  chart.kind = "thin";
  chart.axis = linear_axis(0, length_s / scale.factor, 6, {});
  const int decimals = tick_decimals(tick_distance(length_s / scale.factor, 6));
  chart.axis.margin = 0;
  chart.axis.label = [decimals](double value) { return fmt::format("{:.{}f}", value, decimals); };
  chart.axis_title = "time since the step began, " + scale.unit;
  std::int32_t before = -1;
  for (const auto& [key, lane] : found.lanes) {
    const bool first = before >= 0 && key.first != before;
    chart.rows.push_back({lane.label, percent(lane.busy_s / found.step_s, 0), lane.drawing(), first ? "gap" : ""});
    before = key.first;
  }

  report::Figure figure;
  figure.id = id;
  figure.numbers.columns = {{"rank"}, {"kind", true}, {"time " + scale.unit}, {"share of the step"}, {"operations"}};
  std::set<std::size_t> present;
  for (const auto& [key, value] : found.by_kind) {
    present.insert(key.second);
    figure.numbers.rows.push_back({std::to_string(key.first), kinds[key.second].name, scale.print(value.first),
                                   percent(value.first / found.step_s), std::to_string(value.second)});
  }
  for (const std::size_t kind : present) figure.legend.emplace_back(kinds[kind].swatch, kinds[kind].name);
  figure.title = fmt::format("One {} of {}.", analysis::step_in_parts(result), name);
  figure.caption = caption_of(found, present.contains(waiting_kind));
  chart.draw(figure, fmt::format("{} lanes over {} {}; the time by kind is in the table below.", found.lanes.size(),
                                 scale.print(found.step_s), scale.unit));
  return figure;
}

}  // namespace harness::page
