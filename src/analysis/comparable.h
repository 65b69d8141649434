#pragma once

#include <vector>

#include "analysis/estimator.h"
#include "store/result.h"

namespace harness::analysis {

/// The finished blocks of a sweep, with times that can be compared between cases: per unit of work (token, byte on the
/// bus, FLOP), in terms of the baseline's step, where both amounts are known. A larger batch or message is not slower
/// for taking longer. Nothing without a baseline.
SweepBlocks comparable_blocks(const store::Result& result);

/// How many comparisons share the error of the sweep: one for every change that can run here, and for every fix of a
/// ladder but the first two more (ladder.h).
int declared_comparisons(const store::Result& result);

/// One question per case of the file, in its order. Changes share the error of the family (Bonferroni): every change
/// that was planned counts, whether or not it finished. The control has its own.
std::vector<Question> questions_of(const store::Result& result);

}  // namespace harness::analysis
