#pragma once

#include <span>

#include "analysis/estimator.h"

namespace harness::analysis {

/// Contrasts of steps in virtual time: each case has one, which no other block would change. There is no scatter, so
/// the answers have a centre and no interval. What a prediction is worth is not in it: see Result::smallest_effect of a
/// predicted sweep.
SweepEstimate estimate_predicted(const SweepBlocks& sweep, std::span<const Question> questions);

}  // namespace harness::analysis
