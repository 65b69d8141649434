#include "analysis/warnings.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "analysis/distributions.h"
#include "analysis/sizes.h"
#include "base/text.h"

namespace harness::analysis {
namespace {

using SetAside = LevelFindings::SetAside;

// Blocks so far off are disturbances where they are few. More than a tenth of all, or more of one case than chance (1
// %) puts there at the share of the other cases, are a second state of the machine or of the case.
std::vector<std::string> set_aside_warnings(const store::Result& result, const LevelFindings& level) {
  constexpr double few = 0.1, usual = 0.02, chance = 0.01;
  int all = 0;
  for (const SetAside& row : level.set_aside) all += row.set_aside;
  const double share = static_cast<double>(all) / std::max(level.blocks, 1);
  std::vector<std::string> suspects;
  for (const SetAside& row : level.set_aside) {
    const double of_others = static_cast<double>(all - row.set_aside) / std::max(level.blocks - row.blocks, 1);
    if (binomial_upper_tail(row.blocks, row.set_aside, std::clamp(of_others, usual, 0.99)) >= chance) continue;
    suspects.push_back(
        fmt::format("{} of {} blocks of {}", row.set_aside, row.blocks, result.case_at(row.case_index).name));
  }
  std::vector<std::string> warnings;
  if (share > few) {
    warnings.push_back(
        fmt::format("{} of {} blocks are too far off the others of their case to count. More than a tenth is no rare "
                    "disturbance: look for other jobs on the nodes, or measure when the machine is quiet.",
                    all, level.blocks));
  }
  if (!suspects.empty()) {
    warnings.push_back(
        fmt::format("{} lie apart from the others and do not count: the case may have two states. Look at its block "
                    "medians; its effect describes the state that most blocks are in.",
                    join(suspects, ", ")));
  }
  return warnings;
}

// Whether they matter is for the verdict to say: an interval that reaches far may still lie beyond the threshold.
std::vector<std::string> two_states_warning(const Summary& summary) {
  constexpr std::size_t max_named = 6;
  std::vector<std::string> names;
  for (const CaseSummary& row : summary.cases) {
    if (row.effect && row.effect->two_states) names.push_back(row.name);
  }
  if (names.empty()) return {};
  return {
      fmt::format("some blocks of {} lie far off the rest. Blocks so far off are so common in this sweep that most "
                  "blocks of a case may be the disturbed ones, so its interval reaches to both groups. More rounds "
                  "tell them apart; so does a quiet machine.",
                  join_first(names, max_named))};
}

std::vector<std::string> guard_warnings(const store::Result& result, const LevelFindings& level) {
  std::vector<std::string> warnings;
  if (level.baseline_left) {
    warnings.push_back(
        fmt::format("baseline_again is {:+.1f} % off the baseline, so it is no reference: all effects are against the "
                    "baseline alone. Find out what moved, then measure again.",
                    100 * std::expm1(*level.baseline_left)));
  }
  if (level.carry_over != no_case) {
    warnings.push_back(
        fmt::format("a block's time depends on the case that ran before it; it is longest after {}. So each block is "
                    "held against the other blocks of its round instead of its neighbours, and the intervals are "
                    "wider. Use more warm-up steps (measure.warmup_steps), or longer blocks.",
                    result.case_at(level.carry_over).name));
  }
  if (level.slowest_place) {
    warnings.push_back(
        fmt::format("a block's time depends on its place in the process that it shares; it is longest at place {}. "
                    "The order is balanced, so this widens intervals and favours no case. Use more warm-up steps "
                    "(measure.warmup_steps), or longer blocks.",
                    *level.slowest_place + 1));
  }
  if (level.widening > 1) {
    warnings.push_back(fmt::format(
        "cases drift in ways of their own, or suffer unequally from what comes and goes: their blocks of successive "
        "rounds are off together (correlation {:.2f}). All intervals are made {:.2f} times as wide. They hold for the "
        "conditions of this sweep; measure when the machine is quiet, or repeat the sweep another day.",
        level.serial_correlation, level.widening));
  }
  for (std::string& warning : set_aside_warnings(result, level)) warnings.push_back(std::move(warning));
  return warnings;
}

}  // namespace

std::vector<std::string> level_warnings(const store::Result& result, const Summary& summary) {
  if (sweeps_sizes_alone(result)) return {};  // nobody sees their intervals
  std::vector<std::string> warnings;
  if (summary.level) warnings = guard_warnings(result, *summary.level);
  if (summary.level_alone) {
    for (const std::string& warning : guard_warnings(result, *summary.level_alone))
      warnings.push_back("of the cases in processes of their own: " + warning);
  }
  for (std::string& warning : two_states_warning(summary)) warnings.push_back(std::move(warning));
  return warnings;
}

}  // namespace harness::analysis
