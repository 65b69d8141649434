#pragma once

#include "analysis/explanation.h"
#include "store/result.h"

namespace harness::explain {

/// Predicts the cases of a result that have a profiled step (read_result with the timeline) and says what sets them
/// apart. Throws nothing for what the result lacks: `why_none` says it.
analysis::Explanation explain(const store::Result& result);

}  // namespace harness::explain
