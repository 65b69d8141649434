#include "analysis/predicted_estimator.h"

#include <algorithm>
#include <cmath>

namespace harness::analysis {

SweepEstimate estimate_predicted(const SweepBlocks& sweep, std::span<const Question> questions) {
  SweepEstimate out;
  for (const Question& question : questions) {
    Estimate& answer = out.answers.emplace_back();
    answer.log_ratio.center = 0;
    answer.rounds = 1;
    for (const CaseWeight& term : contrast_of(question, sweep.baseline)) {
      const auto block = std::ranges::find(sweep.blocks, term.case_index, &FinishedBlock::case_index);
      if (block == sweep.blocks.end()) {
        answer.rounds = 0;
        break;
      }
      answer.log_ratio.center += term.weight * std::log(block->seconds);
    }
  }
  return out;
}

}  // namespace harness::analysis
