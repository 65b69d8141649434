#include "sweep/decide.h"

#include <algorithm>
#include <cmath>

#include "base/error.h"
#include "base/units.h"

namespace harness::sweep {

void decide_steps(Recorder& recorder, config::Measure& measure) {
  if (!measure.auto_steps) return;
  constexpr double share = 0.75;
  constexpr int min_steps = 3;
  const CaseState& baseline = recorder.state(0);
  if (!(baseline.step_s > 0)) return;
  const double fixed_s = baseline.set_up_s + measure.warmup_steps * baseline.step_s;
  const double steps = std::clamp<double>(std::round(share * fixed_s / baseline.step_s), min_steps, most_auto_steps);
  measure.steps = recorder.draft().steps = static_cast<int>(steps);
}

void decide_rounds(Recorder& recorder, const config::Measure& measure, double spent_s) {
  store::Result& result = recorder.draft();
  if (measure.time_budget_s <= 0 || !measure.looks.empty()) return;
  double total_s = 0;
  int fit = 0;
  for (int round = 0; round < result.rounds; ++round) {
    for (const store::ResultBlock& block : result.blocks) {
      if (block.round == round && recorder.is_open(block)) total_s += recorder.expected_block_s(block.case_index);
    }
    if (spent_s + total_s > measure.time_budget_s) break;
    fit = round + 1;
  }
  if (fit >= result.rounds) return;
  const int rounds = std::max(1, fit);
  recorder.warn(fmt::format(
      "{} rounds were reduced to {} before the first block, to fit the time budget of {}: preparation took {}, a round "
      "takes about {}. A larger time_budget allows all of them",
      measure.rounds, rounds, show_seconds(measure.time_budget_s), show_seconds(spent_s),
      show_seconds(total_s / (fit + 1))));
  result.rounds = rounds;
  std::erase_if(result.blocks, [&](const store::ResultBlock& block) { return block.round >= rounds; });
}

}  // namespace harness::sweep
