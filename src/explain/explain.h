#pragma once

#include "analysis/breakdown.h"
#include "analysis/findings.h"
#include "explain/picture.h"
#include "explain/reference.h"
#include "store/result.h"

namespace harness::explain {

/// Sets what a step took beside what it was predicted to take, kind by kind, the largest excess first. Pure: both are
/// means over ranks of profiled steps of one case (analysis::CaseBreakdown::mean).
analysis::CaseCompared compare_with_prediction(const analysis::Breakdown& measured,
                                               const analysis::Breakdown& predicted);

/// Finds out which faults a measured case is the picture of, by synthesis: every kind of fault is fitted to the picture
/// and simulated, the one that leaves least unexplained is named, and the search goes on beside it. A fault is named
/// only if it makes the step longer by more than the expected error of predictions, and explains much more than
/// "healthy, but all computations so many times as slow". docs/diagnosis.md has the rules. `result`: of its ranks and
/// of doctor's findings alone.
analysis::Diagnosis diagnose(const CaseModel& model, const Picture& measured, const store::Result& result);

/// Predicts the cases of a result that have a profiled step (read_result with the timeline) and says what sets them
/// apart. Throws nothing for what the result lacks: `why_none` says it.
analysis::Explanation explain(const store::Result& result);

}  // namespace harness::explain
