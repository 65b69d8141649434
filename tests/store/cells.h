#pragma once

#include <fmt/format.h>

#include <map>
#include <string>
#include <vector>

#include "store/columns.h"

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
  tables["/run"] = {cells_of(run_attributes().list(), &result)};
  each_table(result, [&](const Table& table, const auto& rows, const auto& columns) {
    for (const auto& row : rows) tables[table.path].push_back(cells_of(columns.list(), &row));
  });
  return tables;
}

}  // namespace harness::store
