#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <numeric>
#include <set>

#include "analysis/breakdown.h"
#include "base/units.h"
#include "report/page/page.h"
#include "report/words.h"

namespace harness::page {
namespace {

OperationKind kind_of(const store::ResultInterval& row) {
  if (row.kind == "adamw") return OperationKind::optimizer;  // on any stream
  if (row.stream == "tensor") return OperationKind::tensor;
  if (row.stream == "data" || row.stream == "gather" || row.stream == "nodes") return OperationKind::data;
  if (row.stream == "pipeline") return OperationKind::pipeline;
  if (row.stream != "compute")
    return row.phase == analysis::closing_phase ? OperationKind::closing : OperationKind::everyone;
  if (row.kind == "matmul") return OperationKind::matrix_product;
  if (row.kind.starts_with("attention")) return OperationKind::attention;
  return OperationKind::other_computation;
}

std::string lanes_words(std::size_t shown, std::size_t ranks, bool one_clock) {
  std::string words = "A lane is a stream of one rank; of ranks that run the same operations there is one. ";
  if (ranks > shown) words += fmt::format("{} of {} such ranks are drawn. ", shown, ranks);
  if (ranks == 1) return words;
  return words + (one_clock ? "The lanes share a clock: the closing all-reduce ends at once on all ranks. "
                            : "Each rank counts from the start of its own step. ");
}

// Boundaries between colours, as shares of the step.
constexpr std::array<double, 6> bounds{0.01, 0.02, 0.05, 0.1, 0.2, 0.5};
constexpr std::array<const char*, 7> names{"below 1 %",  "1 to 2 %",   "2 to 5 %", "5 to 10 %",
                                           "10 to 20 %", "20 to 50 %", "over 50 %"};
const std::array<std::string, 7> colours{"h0", "h1", "h2", "h3", "h4", "h5", "h6"};

// The lateness of the GPUs of a node, or of several neighbouring nodes: then the latest GPU at each place.
struct NodeRow {
  int first_node = 0;
  std::vector<double> late;  // by place on the node
};

std::vector<NodeRow> rows_of(const store::Result& result, const std::vector<double>& late_share) {
  constexpr std::size_t most_rows = 64;
  std::map<int, std::vector<double>> by_node;
  for (const store::ResultRank& rank : result.rank_table) {
    const auto i = static_cast<std::size_t>(rank.rank);
    by_node[rank.node].push_back(i < late_share.size() ? late_share[i] : NAN);
  }
  const std::size_t per_row = (by_node.size() + most_rows - 1) / most_rows;
  std::vector<NodeRow> rows;
  std::size_t number = 0;
  for (const auto& [node, late] : by_node) {
    if (number++ % per_row == 0) rows.push_back({node, {}});
    std::vector<double>& all = rows.back().late;
    all.resize(std::max(all.size(), late.size()), NAN);
    for (std::size_t i = 0; i < late.size(); ++i) all[i] = std::fmax(all[i], late[i]);
  }
  return rows;
}

// An index into `names`; nullopt if unknown.
std::optional<std::size_t> colour_of(const NodeRow& row, std::size_t place) {
  if (place >= row.late.size() || !std::isfinite(row.late[place])) return std::nullopt;
  return static_cast<std::size_t>(std::ranges::upper_bound(bounds, row.late[place]) - bounds.begin());
}

report::Table latest_of(const std::vector<NodeRow>& rows) {
  report::Table table{{{"from node", true}, {"latest GPU"}, {"late by"}}, {}};
  for (const NodeRow& row : rows) {
    const auto known = [](double late) { return std::isfinite(late) ? late : -INFINITY; };
    const auto latest = std::ranges::max_element(row.late, {}, known);
    if (latest != row.late.end() && std::isfinite(*latest))
      table.rows.push_back(
          {std::to_string(row.first_node), std::to_string(latest - row.late.begin()), signed_percent(*latest, 2)});
  }
  return table;
}

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
  // The kind that took most of a cell; nullopt if less than half of the cell was used.
  std::optional<std::size_t> shown(std::size_t cell) const {
    const auto& parts = covered[cell];
    if (std::accumulate(parts.begin(), parts.end(), 0.0F) < 0.5F) return std::nullopt;
    return static_cast<std::size_t>(std::ranges::max_element(parts) - parts.begin());
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

std::optional<report::Figure> timeline_chart(const analysis::DrawnStep& step, const std::string& id,
                                             const std::string& title, double length_s) {
  std::set<std::int64_t> ranks;
  double step_s = 0;
  for (const analysis::DrawnInterval& x : step.intervals) {
    ranks.insert(x.row->rank);
    step_s = std::max(step_s, x.end_s);
  }
  if (!(step_s > 0)) return std::nullopt;
  const std::vector<std::int64_t> all(ranks.begin(), ranks.end());
  std::vector<std::int64_t> shown;
  for (const std::size_t i : evenly_chosen(all.size())) shown.push_back(all[i]);
  std::vector<DrawnOperation> operations;
  for (const analysis::DrawnInterval& x : step.intervals) {
    const store::ResultInterval& row = *x.row;
    if (!std::ranges::binary_search(shown, row.rank)) continue;
    operations.push_back({row.rank, x.track, kind_of(row), x.start_s, x.end_s, row.waiting_s + row.bubble_s});
  }
  report::Figure figure = lanes_chart(operations, step_s, length_s, id, title);
  figure.caption = lanes_words(shown.size(), ranks.size(), step.one_clock) + figure.caption;
  return figure;
}

report::Figure late_ranks_chart(const store::Result& result, const std::vector<double>& late_share) {
  constexpr double left = 0.09;  // for the nodes' numbers
  const std::vector<NodeRow> rows = rows_of(result, late_share);
  std::size_t gpus = 1;
  for (const NodeRow& row : rows) gpus = std::max(gpus, row.late.size());
  const double cell = std::clamp(360.0 / static_cast<double>(std::max<std::size_t>(rows.size(), 1)), 6.0, 22.0);
  const double height = cell * static_cast<double>(rows.size());
  Svg svg;
  svg.rectangle("empty", left, 1, 0, height);
  svg.stretched(left, 1, 0, height, static_cast<double>(gpus), static_cast<double>(rows.size()),
                cell_paths(rows.size(), gpus, colours,
                           [&](std::size_t row, std::size_t place) { return colour_of(rows[row], place); }));
  const std::size_t every = cell < 14 ? 3 : 1;  // avoids overlapping node numbers
  for (std::size_t row = 0; row < rows.size(); row += every) {
    svg.text("tick", left - 0.01, (static_cast<double>(row) + 0.5) * cell + 4, Svg::Anchor::end,
             std::to_string(rows[row].first_node));
  }
  svg.text("axis", left + (1 - left) / 2, height + 18, Svg::Anchor::middle,
           result.ranks_are_gpus() ? "GPU of the node" : "rank of the node");
  svg.text("axis", 0, height + 18, Svg::Anchor::start, "node");

  report::Figure figure{.id = "late-ranks",
                        .title = "How late each rank was, by node.",
                        .caption = "Shares of the profiled step, means over cases."};
  for (std::size_t k = 0; k < names.size(); ++k) figure.legend.emplace_back(colours[k], names[k]);
  figure.drawing = svg.figure("late-ranks-drawing", height + 24, figure.title,
                              fmt::format("{} rows of nodes; the latest of each is in the table below.", rows.size()));
  figure.numbers = latest_of(rows);
  return figure;
}

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

  report::Figure figure{.id = id, .title = title, .caption = {}};
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
