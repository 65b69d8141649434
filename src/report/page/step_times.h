#pragma once

#include <optional>

#include "analysis/summary.h"
#include "report/document.h"
#include "store/result.h"

namespace harness::page {

/// Step time of every measured case, the slowest first: a dot for each block, a mark at their median.
std::optional<report::Figure> step_times(const store::Result& result, const analysis::Summary& summary);

}  // namespace harness::page
