#pragma once

#include <span>

#include "analysis/breakdown.h"
#include "store/result.h"

namespace harness {

/// The ranks of a role on average. Their splits say how long they computed, communicated unhidden, idled and waited;
/// `one`, the breakdown of the rank that has a timeline, says how that divides. Where a split is missing or does not
/// add up, or `one` has nothing of what the others have, it stands for all: `one` is returned.
Breakdown mean_of_role(const Breakdown& one, std::span<const ResultSplit* const> splits);

}  // namespace harness
