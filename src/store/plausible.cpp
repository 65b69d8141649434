#include "store/plausible.h"

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/error.h"
#include "config/model.h"
#include "store/columns.h"

namespace harness::store {
namespace {

void check_run(const Result& r) {
  // A table without rows says nothing.
  const auto rows = static_cast<std::int64_t>(r.rank_table.size());
  if (rows != 0 && (r.ranks > rows || r.nodes > rows)) {
    fail("attribute {} of /run is {}; /ranks has {} rows", r.ranks > rows ? "ranks" : "nodes",
         r.ranks > rows ? r.ranks : r.nodes, rows);
  }
  require_within("/run/sessions", r.sessions, between(0, 1'000'000), {});
  if (!(r.confidence > 0 && r.confidence < 1)) fail("attribute confidence of /run is {}, which is none", r.confidence);
  const config::Model& m = r.model;
  if (m.layers == 0 && m.hidden == 0 && m.heads == 0 && m.vocab == 0 && m.sequence == 0) return;  // no model
  if (const std::string why = config::why_impossible(m); !why.empty()) fail("/run: {}", why);
}

void check_cases(const Result& r) {
  for (const ResultCase& c : r.cases) {
    if (c.status == CaseStatus::impossible || c.ranks == 0) continue;
    for (const program::Axis axis : program::visible_axes) {
      require_within(fmt::format("column {} of /cases", program::row_of(axis).key), c.layout[axis], between(1, c.ranks),
                     {});
    }
  }
}

void check_roles(const Result& r) {
  std::int32_t case_index = -1, rank = 0;
  for (const ResultRole& row : r.roles) {
    const ResultCase& c = r.at(row);
    const bool next_case = row.case_index > case_index && (case_index < 0 || rank == r.case_at(case_index).ranks);
    if (next_case) rank = 0;
    if (!(next_case || row.case_index == case_index) || row.rank != rank)
      fail("/roles has no row, or not in its place, for rank {} of case {}", rank, row.case_index);
    case_index = row.case_index;
    ++rank;
    require_within("column role of /roles", row.role, between(0, c.ranks - 1), {});
    for (const program::Axis axis : program::visible_axes) {
      require_within(fmt::format("column {} of /roles", program::name_of(axis)), row.at[axis],
                     between(0, c.layout[axis] - 1), {});
    }
  }
  if (case_index >= 0 && rank != r.case_at(case_index).ranks)
    fail("/roles has {} rows for the {} ranks of case {}", rank, r.case_at(case_index).ranks, case_index);
}

void check_blocks(const Result& r) {
  for (const auto& [path, rows] : {std::pair("/gpu", r.gpu.size()), std::pair("/conditions", r.conditions.size())}) {
    if (rows != 0 && rows != r.blocks.size()) fail("{} has {} rows for {} blocks", path, rows, r.blocks.size());
  }
}

void check_times(std::string_view path, const std::vector<std::vector<float>>& blocks) {
  for (const auto& block : blocks) {
    for (const float seconds : block) {
      if (!(seconds < 0 || seconds > largest_amount)) continue;
      fail("{} has {}; possible here is 0 to {}, or nan", path, seconds, largest_amount);
    }
  }
}

}  // namespace

void require_plausible(const Result& result) {
  const Counts counts{result.case_count(), static_cast<std::int64_t>(result.blocks.size()), result.ranks, result.nodes,
                      result.sessions};
  require_within_bounds(run_attributes().list(), "attribute", "/run", span_of(result), counts);
  check_run(result);
  each_table(result, [&](const Table& table, const auto& rows, const auto& columns) {
    require_within_bounds(columns.list(), "column", table.path, span_of(rows), counts);
  });
  check_cases(result);
  check_roles(result);
  check_blocks(result);
}

void require_plausible_times(const Result& result) {
  check_times("/step_seconds", result.step_seconds);
  check_times("/rank_seconds", result.rank_seconds);
}

}  // namespace harness::store
