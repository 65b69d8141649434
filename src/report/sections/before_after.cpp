#include <fmt/format.h>

#include <array>
#include <cmath>

#include "analysis/summary.h"
#include "base/text.h"
#include "base/units.h"
#include "config/experiment.h"
#include "report/metrics.h"
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
    table.columns.insert(table.columns.end(), {{"saved"}, {priced + "s recovered"}, {"saved in a year"}});
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

// One line per metric; those that neither case has are left out.
class BeforeAfter {
 public:
  BeforeAfter(const store::Result& result, const analysis::CaseSummary& before, const analysis::CaseSummary* after)
      : result_(result), before_(before), after_(after) {
    table_.columns = {{"", true}, {"before"}};
    if (after != nullptr) table_.columns.insert(table_.columns.end(), {{"after"}, {"change"}});
  }

  // change: what to say in place of the quotient of the two.
  void add(const Metric& metric, const std::string& change = "") {
    const double before = table_value(metric, result_, before_).value_or(NAN);
    const double after = after_ == nullptr ? NAN : table_value(metric, result_, *after_).value_or(NAN);
    const MetricPrinter printer(metric, std::array{before, after});
    const auto print = [&](double value) { return printer.number_with_unit(value); };
    const double points = 100 * (after - before);
    const bool by_points = metric.unit == Unit::share && change.empty() && std::isfinite(points);
    const bool of_peak = metric.key == "mfu" && measured_by(result_) == Measured::operation;
    add(of_peak ? "share of the peak" : std::string(metric.name), before, after, print,
        by_points ? fmt::format("{:+.1f} points", points) : change);
  }

  // NaN: not known.
  template <class Print>
  void add(const std::string& name, double before, double after, Print print, const std::string& change = "") {
    const auto shown = [&](double value) { return std::isfinite(value) ? print(value) : ""; };
    if (!std::isfinite(before) && !std::isfinite(after)) return;
    std::vector<Cell> cells{name, shown(before)};
    if (after_ != nullptr) {
      cells.push_back(shown(after));
      cells.push_back(change.empty() && before != 0 ? change_words(after / before) : change);
    }
    table_.rows.push_back(std::move(cells));
  }
  // A line that has nothing but a change.
  void add_words(const std::string& name, const std::string& change) { table_.rows.push_back({name, "", "", change}); }
  Table take() { return std::move(table_); }

 private:
  const store::Result& result_;
  const analysis::CaseSummary& before_;
  const analysis::CaseSummary* after_;
  Table table_;
};

// The time and the price of the planned training run; by the same numbers as the section about cost.
void add_cost(const analysis::CostEstimate& estimate, const analysis::CaseSummary* after, BeforeAfter& lines) {
  const analysis::CaseCost* cost_after = nullptr;
  for (const analysis::CaseSaving& saving : estimate.after) {
    if (after != nullptr && saving.after.name == after->name) cost_after = &saving.after;
  }
  const auto add = [&](const std::string& name, double analysis::CaseCost::*member, auto print) {
    lines.add(name, estimate.before.*member, cost_after != nullptr ? cost_after->*member : NAN, print);
  };
  const std::string run = "a run of " + show_tokens(estimate.cost.run_tokens);
  add(run + ", duration", &analysis::CaseCost::duration_s, show_duration);
  add(run + ", price", &analysis::CaseCost::price,
      [&](double amount) { return show_money(amount, estimate.cost.currency); });
}

std::string interval_of_what(bool batches_differ, const std::string& per) {
  if (!per.empty()) return "time" + per;
  return batches_differ ? "time per token" : "step time";
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
  if (estimate.after.empty()) {
    notes.items.emplace_back(estimate.predicted
                                 ? "No change is predicted to be faster by more than what is too close to call."
                                 : "No change is proven faster, so there is nothing to save yet.");
  } else {
    notes.items.push_back(
        fmt::format("The duration after a change is the baseline's times the change{1}. What is recovered are the {0}s "
                    "that the baseline would need beyond its own for the same rate. Saved in a year: the same work on "
                    "the baseline's {0}s, in use all year. Savings of several cases need not add up.",
                    priced_in(estimate), estimate.predicted ? "" : "; tokens/s are medians, as in the table of cases"));
  }
  if (!estimate.ranks_are_gpus) {
    notes.items.emplace_back(
        "Ranks are no GPUs here: the price is that of a rank, which is a share of a machine's cores. This says nothing "
        "about GPUs.");
  }
  section.add(std::move(notes));
  return section;
}

Section before_after_section(const store::Result& result, const analysis::Findings& findings) {
  Section section{"before-after", "Before and after", {}};
  if (analysis::sweeps_sizes_alone(result)) return section;  // a size is no change for the better
  const analysis::CaseSummary *before = findings.baseline(), *after = findings.best();
  if (before == nullptr) {
    section.add(Paragraph{"Nothing of the baseline was measured, so there is no before."});
    return section;
  }
  const std::string per = after == nullptr ? "" : per_what(result);
  const bool batches_differ =
      after != nullptr && result.at(*before).tokens_per_step != result.at(*after).tokens_per_step;
  const std::string effect = after == nullptr ? "" : change_of(after->effect) + " " + interval_of(after->effect);
  BeforeAfter lines(result, *before, after);
  for (const Metric& metric : case_metrics()) {
    if (metric.name.empty()) continue;
    const bool is_time = metric.key == "step_seconds";
    const bool carries_effect = is_time && !batches_differ && per.empty();
    lines.add(metric, carries_effect ? effect : "");
    if (is_time && batches_differ) {
      lines.add(
          "time per token", 1 / before->tokens_per_second, 1 / after->tokens_per_second,
          [](double seconds) { return fmt::format("{:.4g} us", 1e6 * seconds); }, effect);
    }
  }
  if (!per.empty()) lines.add_words("time" + per, effect);
  if (findings.cost) add_cost(*findings.cost, after, lines);
  const std::string names =
      fmt::format("Before: the {}.",
                  before->role == store::CaseRole::baseline ? "baseline" : "baseline at " + before->name) +
      (after == nullptr ? "" : fmt::format(" After: {}.", after->name));
  section.add(Numbers{names, lines.take()});
  std::string words = "No change is proven faster.";
  if (findings.summary.unreliable) words = "The control moved, so no verdict counts.";
  if (findings.summary.predicted) words = "Predicted, not measured: no change is faster than the baseline.";
  if (after != nullptr) {
    const bool is_joint = result.at(*after).variable == config::combination;
    const char* kind = is_joint ? "combination of changes" : "single change";
    const char* together = is_joint ? "" : " (the effects of several changes need not add up)";
    const char* within = findings.summary.levels.empty() ? "paired within" : "over";
    words = findings.summary.predicted
                ? fmt::format("Predicted, not measured. After is the fastest {}{}.", kind, together)
                : fmt::format(
                      "After is the {} with the largest proven effect{}; its interval is that of the {}, {} {} "
                      "rounds. The other lines are medians over all blocks of a case.",
                      kind, together, interval_of_what(batches_differ, per), within, after->effect->rounds);
  }
  section.add(Paragraph{std::move(words)});
  return section;
}

}  // namespace harness::report
