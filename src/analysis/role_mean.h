#pragma once

#include <span>

#include "analysis/breakdown.h"
#include "store/result.h"

namespace harness::analysis {

/// The mean over the ranks of a role. Their splits tell how long each computed, communicated unhidden, idled and
/// waited; `of_rank`, the breakdown of the rank that has a timeline, tells how that divides. Where a split is missing
/// or does not add up, or `of_rank` lacks a part that the others have, its own breakdown is returned.
Breakdown mean_of_role(const Breakdown& of_rank, std::span<const store::ResultSplit* const> splits);

}  // namespace harness::analysis
