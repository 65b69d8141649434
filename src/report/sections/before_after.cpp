#include <fmt/format.h>

#include <array>
#include <cmath>

#include "analysis/summary.h"
#include "base/units.h"
#include "config/experiment.h"
#include "report/context.h"
#include "report/effect_words.h"
#include "report/metrics.h"
#include "report/sections.h"

namespace harness::report {
namespace {

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

constexpr const char* not_together = " (the effects of several changes need not add up)";

std::string interval_of_what(bool batches_differ, const std::string& per) {
  if (!per.empty()) return "time" + per;
  return batches_differ ? "time per token" : "step time";
}

}  // namespace

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
  const bool is_joint = after != nullptr && result.at(*after).variable == config::combination;
  const char* kind = is_joint ? "combination of changes" : "single change";
  if (findings.summary.predicted) {
    std::string words = "Predicted, not measured: no change is faster than the baseline.";
    if (after != nullptr) {
      words = fmt::format("Predicted, not measured. After is the fastest {}{}.", kind, is_joint ? "" : not_together);
    }
    section.add(Paragraph{std::move(words)});
  } else if (after != nullptr) {
    section.add(
        Paragraph{fmt::format("After is the {} with the largest proven effect{}; its interval is that of the {}, {} {} "
                              "rounds. The other lines are medians over all blocks of a case.",
                              kind, is_joint ? "" : not_together, interval_of_what(batches_differ, per),
                              !findings.summary.levels.empty() ? "over" : "paired within", after->effect->rounds)});
  } else if (findings.summary.unreliable) {
    section.add(Paragraph{"The control moved, so no verdict counts."});
  } else {
    section.add(Paragraph{"No change is proven faster."});
  }
  return section;
}

}  // namespace harness::report
