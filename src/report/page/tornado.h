#pragma once

#include <optional>

#include "analysis/summary.h"
#include "report/document.h"
#include "store/result.h"

namespace harness::page {

/// Every change that was compared, the fastest first: its effect on the step time with its interval, over the band of
/// effects too small to matter. Nothing if none was compared.
std::optional<report::Figure> tornado(const store::Result& result, const analysis::Summary& summary);

}  // namespace harness::page
