#include "sweep/decide.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>

#include "analysis/blocks.h"
#include "analysis/estimator.h"
#include "analysis/questions.h"
#include "base/error.h"
#include "base/units.h"

namespace harness::sweep {
namespace {

struct Selection {
  std::string variable;
  double seconds = 0;  // of its cases
};

}  // namespace

std::string selections_that_fit(const std::vector<CaseCost>& cases, double budget_s, int rounds) {
  double baselines_s = 0;
  std::vector<Selection> variables;
  for (const CaseCost& c : cases) {
    const double seconds = c.preparation_s + rounds * c.block_s;
    if (c.variable.empty()) {
      baselines_s += seconds;
      continue;
    }
    const auto known = std::ranges::find(variables, c.variable, &Selection::variable);
    if (known == variables.end())
      variables.push_back({c.variable, seconds});
    else
      known->seconds += seconds;
  }
  std::ranges::stable_sort(variables, {}, &Selection::seconds);
  double together_s = baselines_s;
  std::vector<std::string> together, alone;
  for (const Selection& selection : variables) {
    if (baselines_s + selection.seconds > budget_s) continue;
    alone.push_back(fmt::format("{} ({})", selection.variable, show_seconds(baselines_s + selection.seconds)));
    if (together_s + selection.seconds > budget_s) continue;
    together_s += selection.seconds;
    together.push_back("--only " + selection.variable);
  }
  if (together.empty()) {
    return fmt::format("no single variable fits: {} rounds of the baselines alone take {}", rounds,
                       show_seconds(baselines_s));
  }
  return fmt::format("`{}` fits ({} rounds in {}); each of these fits alone: {}", fmt::join(together, " "), rounds,
                     show_seconds(together_s), fmt::join(alone, ", "));
}

int auto_steps(double set_up_s, double step_s, int warmup_steps) {
  constexpr double share = 0.75;
  constexpr int min_steps = 3;
  const double fixed_s = set_up_s + warmup_steps * step_s;
  return static_cast<int>(std::clamp<double>(std::round(share * fixed_s / step_s), min_steps, most_auto_steps));
}

void decide_steps(Recorder& recorder, config::Measure& measure) {
  if (!measure.auto_steps) return;
  const CaseState& baseline = recorder.state(0);
  if (!(baseline.step_s > 0)) return;
  measure.steps = recorder.draft().steps = auto_steps(baseline.set_up_s, baseline.step_s, measure.warmup_steps);
}

namespace {

// Throws Error: the budget allows `fit` rounds, and a verdict takes `least`.
[[noreturn]] void refuse_budget(const Recorder& recorder, const config::Measure& measure, double spent_s, int fit,
                                int least) {
  const store::Result& result = recorder.result();
  const auto n = static_cast<double>(
      std::ranges::count_if(result.cases, [](const store::ResultCase& row) { return store::may_run(row.status); }));
  std::vector<CaseCost> costs;
  double least_s = spent_s;
  for (std::size_t i = 0; i < result.cases.size(); ++i) {
    if (recorder.expected_block_s(i) <= 0 || !recorder.may_run(i)) continue;
    costs.push_back({result.cases[i].name, result.cases[i].variable, spent_s / n, recorder.expected_block_s(i)});
    least_s += least * costs.back().block_s;
  }
  fail(
      "the time budget of {} ends after {} of {} rounds, and no verdict is possible before {}: nothing was measured. "
      "All cases take {} for {} rounds. {}",
      show_seconds(measure.time_budget_s), fit, result.rounds, least, show_seconds(least_s), least,
      selections_that_fit(costs, measure.time_budget_s, least));
}

}  // namespace

void decide_rounds(Recorder& recorder, const config::Measure& measure, double spent_s) {
  store::Result& result = recorder.draft();
  if (measure.time_budget_s <= 0) return;
  double total_s = 0;
  int fit = 0;
  for (int round = 0; round < result.rounds; ++round) {
    for (const store::ResultBlock& block : result.blocks) {
      if (block.round == round && analysis::will_still_run(result, block))
        total_s += recorder.expected_block_s(block.case_index);
    }
    if (spent_s + total_s > measure.time_budget_s) break;
    fit = round + 1;
  }
  const int least = measure.looks.empty() ? analysis::least_pairs : measure.looks.front();
  if (fit < std::min(least, result.rounds) && analysis::declared_comparisons(result) > 0)
    refuse_budget(recorder, measure, spent_s, fit, least);
  if (fit >= result.rounds || !measure.looks.empty()) return;
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
