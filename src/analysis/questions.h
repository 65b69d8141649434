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

/// How many comparisons share the error of the sweep: one for every change that can run here, at each size, and for
/// every fix of a ladder but the first two more (ladder_questions).
int declared_comparisons(const store::Result& result);

/// One question per case of the file, in its order. Changes share the error of the family (Bonferroni): every change
/// that was planned counts, whether or not it finished, and at whatever size. The control has its own, which its sizes
/// share.
std::vector<Question> questions_of(const store::Result& result);
/// Where in `questions` those stand that are about cases compared with this one, itself among them.
std::vector<std::size_t> questions_about(const store::Result& result, std::int32_t reference,
                                         std::span<const Question> questions);

// Fixes applied one on top of the other. Each is measured alone and together with all before it, in the same rounds, so
// that what it does to the baseline, what it adds to the others and the difference of the two come from one sweep.

struct LadderRung {
  std::string name;
  std::int32_t alone = 0, together = 0;  // its cases; of the first fix, the same
  /// It compares this fix and all before it with those before it. The first's is that of `alone`.
  std::optional<Effect> on_top;
  /// `on_top` as a ratio to what the fix does to the baseline: below 1, the fixes help each other. None for the first.
  std::optional<Effect> interaction;
};

/// A ladder asks two questions besides its cases' effects on the baseline: what each fix but the first adds, and how it
/// interacts. Each has the error `alpha`, which is its part of the error of the sweep.
std::vector<Question> ladder_questions(const store::Result& result, double alpha);

/// The ladder from the answers to these questions. `evidence`: of each case of the file.
std::vector<LadderRung> ladder_of(const store::Result& result, std::span<const Estimate> answers,
                                  std::span<const Evidence> evidence);

}  // namespace harness::analysis
