#pragma once

#include <optional>

#include "analysis/summary.h"
#include "report/document.h"
#include "store/result.h"

namespace harness::page {

/// How fast the step becomes with each fix of a ladder, or with each stage of a climb: its speed against where it
/// started. Nothing without a ladder or an earlier stage.
std::optional<report::Figure> ladder_chart(const store::Result& result, const analysis::Summary& summary);
std::optional<report::Figure> climb_chart(const store::Result& result, const analysis::Summary& summary);

}  // namespace harness::page
