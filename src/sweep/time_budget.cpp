#include "sweep/time_budget.h"

#include <fmt/ranges.h>

#include <algorithm>

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

}  // namespace harness::sweep
