#include <fmt/format.h>

#include <cmath>

#include "base/text.h"
#include "base/units.h"
#include "report/sections.h"
#include "report/words.h"

namespace harness::report {
namespace {

std::string range(double low, double high) {
  return std::isfinite(low) && std::isfinite(high) ? fmt::format(" [{:.1f}, {:.1f}]", low, high) : "";
}

std::vector<Cell> cells_of(const analysis::CaseCost& cost, const std::string& currency) {
  return {cost.name, std::to_string(cost.ranks), Scale{}.print(cost.tokens_per_second), show_duration(cost.duration_s),
          show_money(cost.price, currency)};
}

// The unit that has the price: a rank is a GPU where the backend has any.
std::string priced_in(const analysis::CostEstimate& estimate) {
  return estimate.ranks_are_gpus ? "GPU" : "rank";
}

Table table_of(const analysis::CostEstimate& estimate) {
  const std::string &currency = estimate.cost.currency, priced = priced_in(estimate);
  Table table{{{"case", true}, {priced + "s"}, {"tokens/s"}, {"duration"}, {"price of the run"}}, {}};
  if (!estimate.after.empty()) {
    table.columns.insert(
        table.columns.end(),
        {{"saved"}, {.heading = priced + "s recovered", .worth = 10}, {.heading = "saved in a year", .worth = 20}});
  }
  std::vector<Cell> before = cells_of(estimate.before, currency);
  before.resize(table.columns.size());
  table.rows.push_back(std::move(before));
  for (const analysis::CaseSaving& saving : estimate.after) {
    std::vector<Cell> cells = cells_of(saving.after, currency);
    cells.push_back(fmt::format("{:.1f} %{}", 100 * saving.saved_share,
                                range(100 * saving.saved_share_low, 100 * saving.saved_share_high)));
    cells.push_back(fmt::format("{:.1f}{}", saving.gpus_recovered, range(saving.gpus_low, saving.gpus_high)));
    cells.push_back(show_money(saving.saved_yearly, currency));
    table.rows.push_back(std::move(cells));
  }
  return table;
}

}  // namespace

Section cost_section(const analysis::CostEstimate& estimate) {
  Section section{"cost", "What it is worth", {}};
  section.add(
      Numbers{fmt::format("A training run of {} at {:.2f} {} per {} and hour:", show_tokens(estimate.cost.run_tokens),
                          estimate.cost.per_gpu_hour, estimate.cost.currency, priced_in(estimate)),
              table_of(estimate)});
  List notes;
  const std::string basis =
      estimate.predicted
          ? "Predicted, not measured: the tokens/s and the changes are those of the table of cases."
          : fmt::format(
                "Based on the measured tokens/s of {} of the baseline and on the effects of the proven changes, "
                "with their {:.3g} % intervals.",
                plural(estimate.steps, "step"), 100 * estimate.confidence);
  notes.items.push_back(basis + " Convergence, restarts, checkpoints and the loading of real data are not included.");
  notes.items.push_back(
      estimate.after.empty()
          ? "Nothing is faster, so there is nothing to save yet."
          : fmt::format(
                "The duration after a change is the baseline's times the change. What is recovered are the {0}s that "
                "the baseline would need beyond its own for the same rate. Saved in a year: the same work on the "
                "baseline's {0}s, in use all year. Savings of several cases need not add up.",
                priced_in(estimate)));
  if (!estimate.ranks_are_gpus) {
    notes.items.emplace_back(
        "Ranks are no GPUs here: the price is that of a rank, which is a share of a machine's cores. This says nothing "
        "about GPUs.");
  }
  section.add(std::move(notes));
  return section;
}

}  // namespace harness::report
