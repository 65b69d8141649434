#pragma once

#include <optional>

#include "analysis/cost.h"
#include "cli/verbs.h"

namespace harness {

/// What a training run costs by this result; nothing if neither the command line nor the file's configuration gives a
/// price and a number of tokens. Throws Error for one without the other.
std::optional<CostEstimate> cost_estimate(const CostOptions& options, const Result& result, const Summary& summary);

}  // namespace harness
