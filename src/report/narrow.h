#pragma once

#include <cstddef>
#include <vector>

#include "report/table.h"

namespace harness::report {

/// The table within `width` columns, with nothing left out. Cells of words continue on further lines; if that is not
/// enough, columns move to tables of their own that repeat the columns of words before the first number. A column that
/// is wider by itself stays so.
std::vector<Table> narrowed(const Table& table, std::size_t width);

}  // namespace harness::report
