#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "analysis/estimator.h"
#include "analysis/verdict.h"
#include "store/result.h"

namespace harness::analysis {

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
