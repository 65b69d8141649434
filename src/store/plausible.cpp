#include "store/plausible.h"

#include <cmath>
#include <cstdint>
#include <string_view>

#include "base/error.h"

namespace harness::store {
namespace {

void require_within(std::string_view where, std::int64_t value, std::int64_t low, std::int64_t high) {
  if (value < low || value > high) fail("{} is {}; possible here is {} to {}", where, value, low, high);
}

// Seconds, bytes and FLOP: not known (NaN) or a number that a run could have had.
void require_amount(std::string_view where, double value) {
  if (value < 0 || value > 1e30) fail("{} is {}, which nothing measured can be", where, value);
}

// Known to whoever wrote the row; it may lie before the zero of its clock.
void require_time(std::string_view where, double value) {
  if (!(std::abs(value) <= 1e30)) fail("{} is {}, which is no time", where, value);
}

// A part of a step, known to whoever wrote the row.
void require_duration(std::string_view where, double value) {
  if (std::isnan(value)) fail("{} is {}, which is no duration", where, value);
  require_amount(where, value);
}

void check_run(const Result& r) {
  // A table without rows says nothing; then as many as can be planned for.
  const auto rows = static_cast<std::int64_t>(r.rank_table.size());
  const std::int64_t most = rows == 0 ? 1 << 20 : rows;
  require_within("attribute ranks of /run", r.ranks, 0, most);
  require_within("attribute nodes of /run", r.nodes, 0, most);
  // As many as a configuration may ask for.
  require_within("attribute warmup_steps of /run", r.warmup_steps, 0, 4096);
  require_within("attribute steps of /run", r.steps, 0, 4096);
  require_within("attribute rounds of /run", r.rounds, 0, 10000);
  require_within("/run/sessions", r.sessions, 0, 1'000'000);
  if (!(r.confidence > 0 && r.confidence < 1)) fail("attribute confidence of /run is {}, which is none", r.confidence);
  for (const ResultRung& rung : r.ladder) {
    require_within("column alone of /ladder", rung.alone, 0, r.case_count() - 1);
    require_within("column together of /ladder", rung.together, 0, r.case_count() - 1);
  }
  for (const ResultRank& row : r.rank_table) require_within("column node of /ranks", row.node, 0, r.nodes - 1);
}

template <class Row>
void check_case(const Result& r, const Row& row, std::string_view where) {
  if (!r.has_case(row.case_index)) {
    fail("{} refers to case {}, but there are {} cases", where, row.case_index, r.case_count());
  }
}

void check_cases(const Result& r) {
  for (const ResultCase& c : r.cases) {
    require_within("column ranks_used of /cases", c.ranks, 0, r.ranks);
    const bool runs = c.status != CaseStatus::impossible && c.ranks > 0;
    const std::int64_t most = runs ? c.ranks : INT32_MAX;
    for (const program::Axis axis : program::told_axes) {
      require_within(fmt::format("column {} of /cases", program::row_of(axis).key), c.layout[axis], 1, most);
    }
    require_within("column micro_batches of /cases", c.micro_batches, 0, INT32_MAX);
    require_amount("column tokens_per_step of /cases", c.tokens_per_step);
    require_amount("column model_flop_per_step of /cases", c.model_flop_per_step);
    require_amount("column noncausal_flop_per_step of /cases", c.noncausal_flop_per_step);
    require_amount("column hardware_flop_per_step of /cases", c.hardware_flop_per_step);
    require_amount("column peak_flops_per_rank of /cases", c.peak_flops_per_rank);
    require_amount("column planned_memory_bytes of /cases", c.planned_memory_bytes);
  }
}

void check_roles(const Result& r) {
  std::int32_t case_index = -1, rank = 0;
  for (const ResultRole& row : r.roles) {
    check_case(r, row, "/roles");
    const ResultCase& c = r.at(row);
    const bool next_case = row.case_index > case_index && (case_index < 0 || rank == r.case_at(case_index).ranks);
    if (next_case) rank = 0;
    if (!(next_case || row.case_index == case_index) || row.rank != rank)
      fail("/roles has no row, or not in its place, for rank {} of case {}", rank, row.case_index);
    case_index = row.case_index;
    ++rank;
    require_within("column role of /roles", row.role, 0, c.ranks - 1);
    require_within("column node of /roles", row.node, -1, r.nodes - 1);
    for (const program::Axis axis : program::told_axes) {
      require_within(fmt::format("column {} of /roles", program::name_of(axis)), row.at[axis], 0, c.layout[axis] - 1);
    }
  }
  if (case_index >= 0 && rank != r.case_at(case_index).ranks)
    fail("/roles has {} rows for the {} ranks of case {}", rank, r.case_at(case_index).ranks, case_index);
}

void check_blocks(const Result& r) {
  for (const ResultBlock& b : r.blocks) {
    require_within("column case of /blocks", b.case_index, 0, r.case_count() - 1);
    require_within("column round of /blocks", b.round, 0, 10000);
    require_within("column position of /blocks", b.position, 0, r.case_count());
    require_within("column session of /blocks", b.session, -1, r.sessions);
    require_within("column peak_memory_rank of /blocks", b.peak_memory_rank, -1, r.ranks);
    require_amount("column start_unix_s of /blocks", b.start_unix_s);
    require_amount("column timed_total_s of /blocks", b.timed_total_s);
  }
  if (!r.gpu.empty() && r.gpu.size() != r.blocks.size()) {
    fail("/gpu has {} rows for {} blocks", r.gpu.size(), r.blocks.size());
  }
  if (!r.conditions.empty() && r.conditions.size() != r.blocks.size()) {
    fail("/conditions has {} rows for {} blocks", r.conditions.size(), r.blocks.size());
  }
}

void check_timelines(const Result& r) {
  for (const ResultInterval& row : r.timeline) {
    check_case(r, row, "/timeline");
    require_within("column rank of /timeline", row.rank, 0, r.ranks - 1);
    require_within("column role of /timeline", row.role, 0, r.ranks - 1);
    require_within("column layer of /timeline", row.layer, -1, INT32_MAX);
    require_within("column micro_batch of /timeline", row.micro_batch, -1, INT32_MAX);
    require_time("column start_s of /timeline", row.start_s);
    require_duration("column end_s of /timeline", row.end_s);
  }
  for (const ResultTotal& row : r.totals) {
    check_case(r, row, "/timeline_totals");
    require_within("column rank of /timeline_totals", row.rank, 0, r.ranks - 1);
  }
  for (const ResultSplit& row : r.splits) {
    check_case(r, row, "/timeline_splits");
    require_within("column rank of /timeline_splits", row.rank, 0, r.ranks - 1);
    require_duration("column step_s of /timeline_splits", row.step_s);
    require_duration("column compute_s of /timeline_splits", row.compute_s);
    require_duration("column communication_s of /timeline_splits", row.communication_s);
    require_duration("column exposed_s of /timeline_splits", row.exposed_s);
    require_duration("column overlapped_s of /timeline_splits", row.overlapped_s);
    require_duration("column idle_s of /timeline_splits", row.idle_s);
  }
  for (const ResultOperations& row : r.operations) {
    check_case(r, row, "/timeline_operations");
    require_within("column role of /timeline_operations", row.role, 0, r.ranks - 1);
  }
}

}  // namespace

void require_plausible(const Result& result) {
  check_run(result);
  check_cases(result);
  check_roles(result);
  check_blocks(result);
  check_timelines(result);
  for (const ResultGradient& row : result.gradients) check_case(result, row, "/gradients");
  for (const ResultNcclFact& fact : result.nccl_facts) check_case(result, fact, "/nccl_facts");
  for (const ResultNcclCall& call : result.nccl_calls) check_case(result, call, "/nccl_calls");
  for (const ResultFinding& finding : result.doctor.findings) {
    if (!finding.is_of_nodes()) check_case(result, finding, "/findings");
  }
  for (const ResultPoint& point : result.points) check_case(result, point, "/points");
}

}  // namespace harness::store
