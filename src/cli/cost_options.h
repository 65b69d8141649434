#pragma once

#include <optional>

#include "analysis/findings.h"
#include "cli/verbs.h"

namespace harness::cli {

/// The cost of a training run according to this result; nothing if neither the command line nor the file's
/// configuration gives a price and a number of tokens. Throws Error for one without the other.
std::optional<analysis::CostEstimate> cost_estimate(const CostOptions& options, const store::Result& result,
                                                    const analysis::Summary& summary);

}  // namespace harness::cli
