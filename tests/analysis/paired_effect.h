#pragma once

#include <cstddef>
#include <span>

#include "analysis/estimator.h"
#include "analysis/summary.h"

namespace harness::test {

/// The effect of one case whose blocks are paired with the baseline's, round by round, in one session. comparisons: how
/// many the family declares (Bonferroni).
inline analysis::Effect compare_paired(std::span<const double> baseline, std::span<const double> changed,
                                       int comparisons, double smallest_effect) {
  analysis::SweepBlocks sweep;
  for (std::size_t i = 0; i < baseline.size(); ++i) {
    const auto round = static_cast<std::int32_t>(i);
    sweep.blocks.push_back({.case_index = 0, .round = round, .seconds = baseline[i]});
    sweep.blocks.push_back({.case_index = 1, .round = round, .seconds = changed[i]});
  }
  const analysis::Question question{1, analysis::family_alpha(comparisons, 0.95), smallest_effect};
  const analysis::Estimate estimate = analysis::estimate_mean_pairs(sweep, std::span(&question, 1)).answers[0];
  return analysis::effect_of(estimate, smallest_effect, {}).value_or(analysis::Effect{});
}

}  // namespace harness::test
