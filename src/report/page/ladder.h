#pragma once

#include <optional>

#include "analysis/summary.h"
#include "report/document.h"
#include "store/result.h"

namespace harness::html {

/// Step time of every measured case, the slowest first: a dot for each block, a mark at their median.
std::optional<Figure> ladder(const Result& result, const Summary& summary);

}  // namespace harness::html
