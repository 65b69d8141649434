#pragma once

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <map>
#include <string>
#include <vector>

#include "sample.h"
#include "store/columns.h"
#include "store/result_file.h"
#include "support/files.h"

namespace harness::store {

inline std::string cell(const Column& column, const void* row) {
  void* const member = column.member == Member::key ? nullptr : column.in(const_cast<void*>(row));
  switch (column.member) {
    case Member::key:
      return "";
    case Member::int32:
      return fmt::format("{}", *static_cast<std::int32_t*>(member));
    case Member::int64:
      return fmt::format("{}", *static_cast<std::int64_t*>(member));
    case Member::uint64:
      return fmt::format("{}", *static_cast<std::uint64_t*>(member));
    case Member::real:
      return fmt::format("{}", *static_cast<double*>(member));
    case Member::flag:
      return fmt::format("{}", *static_cast<bool*>(member));
    case Member::text:
    case Member::word:
      break;
  }
  return text_in(column, row);
}

/// "NAME=VALUE" of each column of a row.
inline std::vector<std::string> cells_of(const ColumnList& columns, const void* row) {
  std::vector<std::string> cells;
  for (const Column& column : columns) cells.push_back(column.name + "=" + cell(column, row));
  return cells;
}

/// All tables that have rows, and the attributes of /run, by path.
inline std::map<std::string, std::vector<std::vector<std::string>>> cells_of(const Result& result) {
  std::map<std::string, std::vector<std::vector<std::string>>> tables;
  tables["/run"] = {cells_of(columns_of<Result>().list(), &result)};
  each_table(result, [&](const Table& table, const auto& rows, const auto& columns) {
    for (const auto& row : rows) tables[table.path].push_back(cells_of(columns.list(), &row));
  });
  return tables;
}

inline ResultInterval interval(int case_index, const std::string& what) {
  ResultInterval row;
  row.case_index = case_index;
  row.role = 1;
  row.rank = 2;
  row.operation = 3;
  row.kind = "matmul";
  row.stream = "compute";
  row.phase = "forward";
  row.what = what;
  row.micro_batch = 4;
  row.layer = 5;
  row.start_s = 0.125;
  row.end_s = 0.25;
  row.waiting_s = 0.0625;
  row.bubble_s = 0.03125;
  return row;
}

class ResultFileTest : public ::testing::Test {
 protected:
  /// Each table of which `want` has rows, and the attributes of /run.
  void expect_read_back(Result want) {
    want.model = want.model.resolved();
    auto got = cells_of(read_result(path_));
    for (const auto& [path, rows] : cells_of(want)) EXPECT_EQ(got[path], rows) << path;
  }

  test::TemporaryFolder folder_;
  std::string path_ = folder_ / "r.h5";
  Result plan_ = sample_plan();
};

}  // namespace harness::store
