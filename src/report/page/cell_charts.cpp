#include "report/page/page.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <optional>
#include <set>

#include "analysis/breakdown.h"
#include "analysis/profiled_step.h"
#include "base/median.h"
#include "base/units.h"
#include "report/page/drawing.h"

namespace harness::page {
namespace {

OperationKind kind_of(const store::ResultInterval& row) {
  if (row.kind == "adamw") return OperationKind::optimizer;  // on whatever stream
  if (row.stream == "tensor") return OperationKind::tensor;
  if (row.stream == "data" || row.stream == "gather" || row.stream == "nodes") return OperationKind::data;
  if (row.stream == "pipeline") return OperationKind::pipeline;
  if (row.stream != "compute")
    return row.phase == analysis::closing_phase ? OperationKind::closing : OperationKind::everyone;
  if (row.kind == "matmul") return OperationKind::matrix_product;
  if (row.kind.starts_with("attention")) return OperationKind::attention;
  return OperationKind::other_computation;
}

std::string lanes_words(std::size_t shown, std::size_t ranks, std::size_t roles, bool one_clock) {
  const bool one_of_role = ranks == roles;
  std::string words = "A lane is a stream of one rank.";
  if (ranks > shown) {
    words = fmt::format("A lane is a stream of one rank, for {} of {} {} from the first to the last.", shown, ranks,
                        one_of_role ? "roles" : "ranks");
  } else if (roles > 1 && one_of_role) {
    words = "A lane is a stream of one rank, for one rank of each role (ranks of a role run the same operations).";
  }
  if (ranks == 1) return words + " ";
  return words + (one_clock ? " The lanes share a clock: the closing all-reduce ends at once on all ranks. "
                            : " Each rank counts from the start of its own step. ");
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
  const analysis::DrawnStep step = analysis::drawn_step(result, case_index);
  std::set<std::int64_t> ranks;
  std::set<std::int32_t> roles;
  double step_s = 0;
  for (const analysis::DrawnInterval& x : step.intervals) {
    ranks.insert(x.row->rank);
    roles.insert(x.row->role);
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
  report::Figure figure =
      lanes_chart(operations, step_s, length_s, id,
                  fmt::format("One {} of {}.", analysis::step_in_parts(result), result.case_at(case_index).name));
  figure.caption = lanes_words(shown.size(), ranks.size(), roles.size(), step.one_clock) + figure.caption;
  return figure;
}

namespace {

// Bounds of the colours, as shares of the step beyond the median rank's.
constexpr std::array<double, 6> bounds{0.01, 0.02, 0.05, 0.1, 0.2, 0.5};
constexpr std::array<const char*, 7> names{"below 1 %",  "1 to 2 %",   "2 to 5 %", "5 to 10 %",
                                           "10 to 20 %", "20 to 50 %", "over 50 %"};
const std::array<std::string, 7> colours{"h0", "h1", "h2", "h3", "h4", "h5", "h6"};
constexpr double left = 0.09;  // for the ranks' numbers

// An index into `names`; nothing where the rank was idle.
std::optional<std::size_t> colour_of(float seconds, float median) {
  if (!std::isfinite(seconds) || !(median > 0)) return std::nullopt;
  const double excess = seconds / median - 1;
  std::size_t colour = 0;
  while (colour < bounds.size() && excess >= bounds[colour]) ++colour;
  return colour;
}

std::string ranks_of(const analysis::HeatMap& heat, std::size_t row) {
  const std::int32_t first = heat.first_rank[row];
  return heat.ranks_per_row == 1 ? std::to_string(first) : fmt::format("{}–{}", first, first + heat.ranks_per_row - 1);
}

report::Table worst_rows(const analysis::HeatMap& heat) {
  constexpr std::size_t max_rows = 64;
  report::Table table{
      {{heat.ranks_per_row == 1 ? "rank" : "ranks", true}, {"median behind"}, {"most behind"}, {"in step"}}, {}};
  for (std::size_t row = 0; row < std::min(max_rows, heat.seconds.size()); ++row) {
    std::vector<double> excess;
    std::size_t worst = 0;
    double most = -INFINITY;
    for (std::size_t step = 0; step < heat.seconds[row].size(); ++step) {
      const double share = heat.seconds[row][step] / heat.median[step] - 1;
      if (!std::isfinite(share)) continue;
      excess.push_back(share);
      if (share > most) worst = step;
      most = std::max(most, share);
    }
    if (excess.empty()) continue;
    table.rows.push_back(
        {ranks_of(heat, row), signed_percent(median(excess), 2), signed_percent(most, 2), std::to_string(worst + 1)});
  }
  return table;
}

}  // namespace

report::Figure heat_map(const analysis::HeatMap& heat, const std::string& where) {
  const std::size_t rows = heat.seconds.size(), steps = heat.median.size();
  const double cell = std::clamp(360.0 / static_cast<double>(std::max<std::size_t>(rows, 1)), 4.0, 22.0);
  const double height = cell * static_cast<double>(rows);
  Svg svg;
  svg.rectangle("empty", left, 1, 0, height);
  svg.stretched(left, 1, 0, height, static_cast<double>(steps), static_cast<double>(rows),
                cell_paths(rows, steps, colours, [&](std::size_t row, std::size_t step) {
                  return colour_of(heat.seconds[row][step], heat.median[step]);
                }));
  std::size_t every = 1;  // so that the rows' numbers do not touch
  while (static_cast<double>(every) * cell < 14) ++every;
  for (std::size_t row = 0; row < rows; row += every) {
    svg.text("tick", left - 0.01, (static_cast<double>(row) + 0.5) * cell + 4, Svg::Anchor::end,
             std::to_string(heat.first_rank[row]));
  }
  for (std::size_t step = 0; step < steps; step += std::max<std::size_t>(1, (steps + 9) / 10)) {
    const double x = left + (1 - left) * (static_cast<double>(step) + 0.5) / static_cast<double>(steps);
    svg.text("tick", x, height + 16, Svg::Anchor::middle, std::to_string(step + 1));
  }
  svg.text("axis", left + (1 - left) / 2, height + 34, Svg::Anchor::middle, "timed step");
  svg.text("axis", 0, height + 16, Svg::Anchor::start, "rank");

  report::Figure figure;
  figure.id = "heat-map";
  figure.title = "How far each rank was behind the median rank, step by step.";
  figure.caption = where;
  if (heat.ranks_per_row > 1)
    figure.caption += fmt::format(" A row is the slowest of {} neighbouring ranks.", heat.ranks_per_row);
  for (std::size_t k = 0; k < names.size(); ++k) figure.legend.emplace_back(colours[k], names[k]);
  figure.drawing = svg.figure(
      "heat-map-drawing", height + 40, figure.title,
      fmt::format("{} rows of ranks by {} steps; medians and extremes are in the table below.", rows, steps));
  figure.numbers = worst_rows(heat);
  return figure;
}

}  // namespace harness::page
