#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <functional>

#include "report/cost_lines.h"
#include "report/html/effect_words.h"
#include "report/html/sections.h"
#include "report/words.h"

namespace harness::html {
namespace {

// One line per metric; those that neither case has are left out.
class Comparison {
 public:
  Comparison(const CaseSummary& before, const CaseSummary* after) : before_(before), after_(after) {}

  using Value = std::function<double(const CaseSummary&)>;
  using Print = std::function<std::string(double)>;

  void add(const std::string& metric, const Value& value, const Print& print, const std::string& change = "") {
    const double before = value(before_), after = after_ == nullptr ? NAN : value(*after_);
    if (!std::isfinite(before) && !std::isfinite(after)) return;
    std::vector<std::string> row{metric, std::isfinite(before) ? print(before) : ""};
    if (after_ != nullptr) {
      row.push_back(std::isfinite(after) ? print(after) : "");
      const bool both = std::isfinite(before) && std::isfinite(after) && before != 0;
      row.push_back(!change.empty() ? change : both ? signed_percent(after / before - 1) : "");
    }
    table.rows.push_back(std::move(row));
  }
  // For shares: the difference in points, not a share of a share.
  void add_share(const std::string& metric, const Value& value) {
    std::string change;
    if (after_ != nullptr) {
      const double points = 100 * (value(*after_) - value(before_));
      if (std::isfinite(points)) change = fmt::format("{:+.1f} points", points);
    }
    add(
        metric, value, [](double share) { return percent(share); }, change);
  }

  Table table;

 private:
  const CaseSummary& before_;
  const CaseSummary* after_;
};

double positive(double value) {
  return value > 0 ? value : NAN;
}

// What the planned training run takes; by the same numbers as the section about cost.
void add_cost(Comparison& rows, const Findings& findings) {
  if (!findings.cost) return;
  const CostEstimate& estimate = *findings.cost;
  const auto of = [&](const CaseSummary& c) -> const CaseCost* {
    if (c.name == estimate.before.name) return &estimate.before;
    const auto at = std::ranges::find(
        estimate.after, c.name, [](const CaseSaving& one) -> const auto& { return one.after.name; });
    return at == estimate.after.end() ? nullptr : &at->after;
  };
  const auto value = [&](double CaseCost::*member) {
    return [&of, member](const CaseSummary& c) {
      const CaseCost* cost = of(c);
      return cost == nullptr ? NAN : cost->*member;
    };
  };
  const std::string run = "a run of " + show_tokens(estimate.cost.run_tokens);
  rows.add(run + ", duration", value(&CaseCost::duration_s), show_duration);
  rows.add(run + ", price", value(&CaseCost::price),
           [&](double amount) { return show_money(amount, estimate.cost.currency); });
}

}  // namespace

Section before_after_section(const Result& result, const Findings& findings) {
  Section section{"before-after", "Before and after", {}};
  if (findings.baseline() == nullptr) {
    section.pieces.push_back(Paragraph{"Nothing of the baseline was measured, so there is no before."});
    return section;
  }
  const CaseSummary& before = *findings.baseline();
  const CaseSummary* after = findings.best();
  Comparison rows(before, after);
  rows.table.columns = {{"", true}, {"before"}};
  std::string effect;
  bool batches_differ = false;
  if (after != nullptr) {
    rows.table.columns.push_back({"after"});
    rows.table.columns.push_back({"change"});
    effect = change_of(*after) + " " + interval_of(*after);
    batches_differ = result.at(before).tokens_per_step != result.at(*after).tokens_per_step;
  }
  const std::vector<double> seconds{before.step_seconds, after != nullptr ? after->step_seconds : NAN};
  const Scale time = scale_of_seconds(seconds);
  const auto print_time = [&](double value) { return time.print(value) + " " + time.unit; };
  const std::vector<double> memory{before.peak_memory_bytes, after != nullptr ? after->peak_memory_bytes : NAN};
  const Scale bytes = scale_of_bytes(memory);

  rows.add(
      "step time", [](const auto& c) { return c.step_seconds; }, print_time, batches_differ ? "" : effect);
  if (batches_differ) {
    rows.add(
        "time per token", [](const auto& c) { return 1 / c.tokens_per_second; },
        [](double value) { return fmt::format("{:.4g} us", 1e6 * value); }, effect);
  }
  rows.add(
      "tokens per second", [](const auto& c) { return positive(c.tokens_per_second); },
      [](double value) { return Scale{}.print(value); });
  rows.add_share("MFU", [](const auto& c) { return c.mfu.value_or(NAN); });
  rows.add_share("GPU busy (as the driver says)", [](const auto& c) { return c.gpu_utilisation; });
  rows.add(
      "SM clock", [](const auto& c) { return c.sm_clock_hz; },
      [](double value) { return fmt::format("{:.0f} MHz", value / 1e6); });
  rows.add(
      "memory of the fullest rank", [](const auto& c) { return positive(c.peak_memory_bytes); },
      [&](double value) { return bytes.print(value) + " " + bytes.unit; });
  rows.add(
      "power per GPU", [](const auto& c) { return c.power_w; },
      [](double value) { return fmt::format("{:.0f} W", value); });
  rows.add(
      "tokens per joule", [](const auto& c) { return c.tokens_per_joule; },
      [](double value) { return Scale{}.print(value); });

  add_cost(rows, findings);

  section.pieces.push_back(
      Numbers{"Before: the baseline." + (after != nullptr ? " After: " + after->name + "." : std::string()), rows.table,
              false});
  if (after != nullptr) {
    section.pieces.push_back(
        Paragraph{fmt::format("After is the single change with the largest proven effect; its interval is that of {} "
                              "paired within {} rounds. The "
                              "other lines are medians over all blocks of a case. Several changes together were not "
                              "measured unless a case says "
                              "so, and their effects need not add up.",
                              batches_differ ? "the time per token" : "the step time", after->effect->rounds)});
  } else {
    section.pieces.push_back(Paragraph{findings.summary.unreliable
                                           ? "There is no after: the control failed, so no verdict counts."
                                           : "There is no after: no change is proven faster."});
  }
  return section;
}

}  // namespace harness::html
