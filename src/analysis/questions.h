#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "analysis/estimator.h"
#include "analysis/verdict.h"
#include "store/result.h"

namespace harness::analysis {

/// The finished blocks of a sweep, with times that can be compared between cases: per unit of work (token, byte on the
/// bus, FLOP), in terms of the baseline's step, where both amounts are known. A larger batch is not slower for taking
/// longer. One element for the baseline and the cases that are compared with it and, of an operation, one for each
/// further size. Nothing without a baseline.
std::vector<SweepBlocks> comparable_blocks(const store::Result& result);

/// How many comparisons share the error of the sweep: one for every change that can run here, at each size.
int declared_comparisons(const store::Result& result);

/// One question per case of the file, in its order. Changes share the error of the family (Bonferroni): every change
/// that was planned counts, whether or not it finished, and at whatever size. The control has its own, which its sizes
/// share.
std::vector<Question> questions_of(const store::Result& result);
/// Where in `questions` those stand that are about cases compared with this one, itself among them.
std::vector<std::size_t> questions_about(const store::Result& result, std::int32_t reference,
                                         std::span<const Question> questions);

}  // namespace harness::analysis
