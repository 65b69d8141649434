#pragma once

#include <string>
#include <utility>
#include <vector>

#include "machine/conditions.h"
#include "store/result.h"
#include "store/table.h"

// Every table of a result file with its columns, and every attribute of /run, once. docs/file-format.md says what they
// mean; a test compares the two.
namespace harness::store {

inline constexpr const char* schema_name = "harness-result";
/// Rises only if a reader of the version before would misread a file; a column more is no new version.
inline constexpr int schema_version = 3;

/// Opens a result file, or throws Error: no such file, a directory, not HDF5, truncated, not a harness result, too new.
hdf5::File open_result(const std::string& path, bool writable);

inline constexpr std::size_t warning_bytes = 512;

Columns<Result> run_attributes();

Columns<std::pair<std::string, std::string>> pair_columns();
Columns<ResultRank> rank_columns();
Columns<ResultCase> case_columns(const std::vector<std::string>& variables);
Columns<ResultRole> role_columns();
Columns<ResultBlock> block_columns();
Columns<ResultGpu> gpu_columns();
Columns<machine::Conditions> conditions_columns();
Columns<ResultInterval> interval_columns();
Columns<ResultTotal> total_columns();
Columns<ResultSplit> split_columns();
Columns<ResultOperations> operations_columns();
Columns<ResultGradient> gradient_columns();
Columns<ResultNcclCall> nccl_call_columns();
Columns<ResultNcclFact> nccl_fact_columns();
Columns<ResultPoint> point_columns();
Columns<ResultFinding> finding_columns();

/// When the rows of a table become known.
enum class Filled : std::uint8_t {
  at_once,   // before the first block; written blocks may change them
  by_block,  // one of each block, when it has run
  by_case,   // after the cases' profiled steps, as many as there is room for; until then `case` is -1
};

struct Table {
  const char* path;
  Filled filled = Filled::at_once;
  bool optional = false;  // as Column::optional
};

/// Calls each(table, rows, columns) for all tables of a result, const or not, in the order in which they lie in a file:
/// what is rewritten comes first, where no object's length can shift it across a page.
template <class AnyResult, class Each>
void each_table(AnyResult& r, Each&& each) {
  each(Table{"/run/environment"}, r.environment, pair_columns());
  each(Table{"/run/identity"}, r.identity, pair_columns());
  each(Table{"/ranks"}, r.rank_table, rank_columns());
  each(Table{"/cases"}, r.cases, case_columns(r.variables));
  each(Table{"/roles", Filled::at_once, true}, r.roles, role_columns());
  each(Table{"/blocks"}, r.blocks, block_columns());
  each(Table{"/tuning", Filled::at_once, true}, r.tuning, pair_columns());
  each(Table{"/timeline_splits", Filled::at_once, true}, r.splits, split_columns());
  each(Table{"/timeline_operations", Filled::at_once, true}, r.operations, operations_columns());
  each(Table{"/gradients", Filled::at_once, true}, r.gradients, gradient_columns());
  each(Table{"/nccl_calls", Filled::at_once, true}, r.nccl_calls, nccl_call_columns());
  each(Table{"/nccl_facts", Filled::at_once, true}, r.nccl_facts, nccl_fact_columns());
  each(Table{"/points", Filled::at_once, true}, r.points, point_columns());
  each(Table{"/gpu", Filled::by_block, true}, r.gpu, gpu_columns());
  each(Table{"/conditions", Filled::by_block, true}, r.conditions, conditions_columns());
  each(Table{"/findings", Filled::at_once, true}, r.doctor.findings, finding_columns());
  each(Table{"/timeline", Filled::by_case}, r.timeline, interval_columns());
  each(Table{"/timeline_totals", Filled::by_case}, r.totals, total_columns());
}

}  // namespace harness::store
