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

void list_columns(Columns<Result>& columns);
void list_columns(Columns<std::pair<std::string, std::string>>& columns);
void list_columns(Columns<ResultRank>& columns);
void list_columns(Columns<ResultRole>& columns);
void list_columns(Columns<ResultBlock>& columns);
void list_columns(Columns<ResultGpu>& columns);
void list_columns(Columns<machine::Conditions>& columns);
void list_columns(Columns<ResultInterval>& columns);
void list_columns(Columns<ResultTotal>& columns);
void list_columns(Columns<ResultSplit>& columns);
void list_columns(Columns<ResultOperations>& columns);
void list_columns(Columns<ResultGradient>& columns);
void list_columns(Columns<ResultNcclCall>& columns);
void list_columns(Columns<ResultNcclFact>& columns);
void list_columns(Columns<ResultPoint>& columns);
void list_columns(Columns<ResultFinding>& columns);
void list_columns(Columns<ResultCase>& columns, const std::vector<std::string>& variables);

/// The attributes of /run, for Row = Result; else the columns of the table that has such rows.
template <class Row, class... Variables>
Columns<Row> columns_of(const Variables&... variables) {
  Columns<Row> columns;
  list_columns(columns, variables...);
  return columns;
}

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
  const auto table = [&]<class Rows>(const Table& about, Rows& rows, const auto&... variables) {
    each(about, rows, columns_of<typename Rows::value_type>(variables...));
  };
  table({"/run/environment"}, r.environment);
  table({"/run/identity"}, r.identity);
  table({"/ranks"}, r.rank_table);
  table({"/cases"}, r.cases, r.variables);
  table({"/roles", Filled::at_once, true}, r.roles);
  table({"/blocks"}, r.blocks);
  table({"/tuning", Filled::at_once, true}, r.tuning);
  table({"/timeline_splits", Filled::at_once, true}, r.splits);
  table({"/timeline_operations", Filled::at_once, true}, r.operations);
  table({"/gradients", Filled::at_once, true}, r.gradients);
  table({"/nccl_calls", Filled::at_once, true}, r.nccl_calls);
  table({"/nccl_facts", Filled::at_once, true}, r.nccl_facts);
  table({"/points", Filled::at_once, true}, r.points);
  table({"/gpu", Filled::by_block, true}, r.gpu);
  table({"/conditions", Filled::by_block, true}, r.conditions);
  table({"/findings", Filled::at_once, true}, r.doctor.findings);
  table({"/timeline", Filled::by_case}, r.timeline);
  table({"/timeline_totals", Filled::by_case}, r.totals);
}

}  // namespace harness::store
