#pragma once

#include "analysis/breakdown.h"
#include "analysis/explanation.h"
#include "store/result.h"

namespace harness::explain {

/// Sets what a step took beside what it was predicted to take, kind by kind, the largest excess first. Pure: both are
/// means over ranks of profiled steps of one case (analysis::CaseBreakdown::mean).
analysis::CaseCompared compare_with_prediction(const analysis::Breakdown& measured,
                                               const analysis::Breakdown& predicted);

/// Predicts the cases of a result that have a profiled step (read_result with the timeline) and says what sets them
/// apart. Throws nothing for what the result lacks: `why_none` says it.
analysis::Explanation explain(const store::Result& result);

}  // namespace harness::explain
