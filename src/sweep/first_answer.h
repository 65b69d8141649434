#pragma once

#include <string>

#include "analysis/summary.h"
#include "store/result.h"

namespace harness::sweep {

/// Where a sweep stands after its first `rounds` rounds, for somebody who waits: the settled cases with the numbers of
/// their verdicts, and the open ones from the fastest on with what their change could still be, which is no verdict.
/// `summary` is that of `result`. "" if nothing can be said.
std::string first_answer(const store::Result& result, const analysis::Summary& summary, int rounds);

}  // namespace harness::sweep
