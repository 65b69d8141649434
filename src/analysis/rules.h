#pragma once

#include <string>
#include <vector>

#include "analysis/breakdown.h"
#include "analysis/summary.h"
#include "store/result.h"

namespace harness::analysis {

/// Rules of thumb that practitioners use, for one case: a sentence for each rule that applies, with the numbers that
/// made it apply. None of them proves anything; each tells where to look.
std::vector<std::string> fired_rules(const store::Result& result, const Summary& summary,
                                     const CaseBreakdown& breakdown);
/// The same for the sweep as a whole: efficiency beyond one node, tokens/s against the batch.
std::vector<std::string> fired_rules(const store::Result& result, const Summary& summary);

}  // namespace harness::analysis
