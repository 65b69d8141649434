#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "analysis/estimator.h"
#include "store/result.h"

namespace harness::analysis {

/// The finished blocks of a sweep, with times that can be compared between cases: per unit of work (token, byte on the
/// bus, FLOP), in terms of the baseline's step, where both amounts are known. A larger batch or message is not slower
/// for taking longer. Like is compared with like: one element for the baseline and what is compared with it, and where
/// there is a baseline_alone one for that, which has no control. Nothing without a baseline.
std::vector<SweepBlocks> comparable_blocks(const store::Result& result);

/// How many comparisons share the error of the sweep: one for every change that can run here, and for every fix of a
/// ladder but the first two more (ladder.h).
int declared_comparisons(const store::Result& result);

/// One question per case of the file, in its order. Changes share the error of the family (Bonferroni): every change
/// that was planned counts, whether or not it finished, and whatever it is compared with. The control has its own.
std::vector<Question> questions_of(const store::Result& result);
/// Where in `questions` those stand that are about cases compared with this one.
std::vector<std::size_t> questions_about(const store::Result& result, std::int32_t reference,
                                         std::span<const Question> questions);

/// How much longer the baseline takes in a process of its own than in one that blocks share: the trimmed mean over
/// rounds of the log ratio of baseline_alone to the baseline, with Yuen's interval. Not known (no rounds) without
/// pairs.
Estimate cost_of_a_process(std::span<const SweepBlocks> sweeps, double coverage);

}  // namespace harness::analysis
