#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "analysis/breakdown.h"
#include "analysis/profiled_step.h"
#include "report/page/charts.h"
#include "report/page/lanes.h"

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

}  // namespace harness::page
