#pragma once

#include "analysis/explanation.h"
#include "explain/picture.h"
#include "explain/reference.h"
#include "store/result.h"

namespace harness::explain {

/// Finds out which faults a measured case is the picture of, by synthesis: every kind of fault is fitted to the picture
/// and simulated, the one that leaves least unexplained is named, and the search goes on beside it. A fault is named
/// only if it makes the step longer by more than the expected error of predictions, and explains much more than
/// "healthy, but all computations so many times as slow". docs/diagnosis.md has the rules. `result`: of its ranks and
/// of doctor's findings alone.
analysis::Diagnosis diagnose(const CaseModel& model, const Picture& measured, const store::Result& result);

}  // namespace harness::explain
