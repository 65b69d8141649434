#pragma once

#include <string>
#include <vector>

#include "analysis/summary.h"
#include "report/table.h"
#include "store/result.h"

namespace harness {

/// The rows that text and Markdown show, and the notes that their verdict column points to as [1], [2] ….
struct CaseTable {
  Table table;
  std::vector<std::string> notes;
};
CaseTable case_table(const Result& result, const Summary& summary);

}  // namespace harness
