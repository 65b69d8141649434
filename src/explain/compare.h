#pragma once

#include "analysis/breakdown.h"
#include "analysis/explanation.h"

namespace harness::explain {

/// Sets what a step took beside what it was predicted to take, kind by kind, the largest excess first. Pure: both are
/// means over ranks of profiled steps of one case (analysis::CaseBreakdown::mean).
analysis::CaseCompared compare_with_prediction(const analysis::Breakdown& measured,
                                               const analysis::Breakdown& predicted);

}  // namespace harness::explain
