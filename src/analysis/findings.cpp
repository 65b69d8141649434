#include "analysis/findings.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "analysis/cases.h"
#include "base/units.h"
#include "config/experiment.h"
#include "config/registry.h"

namespace harness::analysis {
namespace {

// The usual thresholds.
constexpr double max_communication = 0.5;    // of the step
constexpr double max_per_computation = 0.3;  // communication over computation
constexpr double max_idle = 0.02;            // of the step, in one place

void communication(const Breakdown& mean, std::vector<std::string>& fired) {
  const double hidden = mean.overlapped_s();
  const double all = mean.parts.exposed() + mean[Part::waiting].value_or(0) + hidden;
  if (all > max_communication * mean.step_s) {
    fired.push_back(
        fmt::format("Communication takes {} of the step, waiting included: more than half. Try fewer or larger "
                    "messages, or another layout, before you work on computation.",
                    percent(all / mean.step_s)));
  }
  const double computation = mean.parts.computation();
  if (computation > 0 && all > max_per_computation * computation) {
    fired.push_back(
        fmt::format("Communication takes {:.2f} times as long as computation. Above 0.3 it becomes hard to hide; {} of "
                    "the step is not hidden.",
                    all / computation, percent((all - hidden) / mean.step_s)));
  }
}

// "" where an idle moment there is nothing to remark upon.
std::string where_idle(const IdlePlace& place) {
  if (place.kind == IdlePlace::Kind::between_collectives) return place.name();
  const bool turns = (place.before == "forward" && place.after == "backward") ||
                     (place.before == "backward" && place.after == "forward");
  if (place.kind != IdlePlace::Kind::between_phases || !turns) return "";
  return fmt::format("between {} and {}", place.before, place.after);
}

void idle(const Breakdown& mean, std::vector<std::string>& fired) {
  for (const auto& [place, s] : mean.idle) {
    const std::string where = where_idle(place);
    if (where.empty() || s <= max_idle * mean.step_s) continue;
    fired.push_back(
        fmt::format("Nothing runs for {} of the step {}: the host does not keep up, or something synchronises there.",
                    percent(s / mean.step_s), where));
  }
}

constexpr double seconds_per_hour = 3600;
constexpr double hours_per_year = 365.25 * 24;

CaseCost cost_of(const config::Cost& cost, const std::string& name, int ranks, double tokens_per_second) {
  CaseCost out{name, ranks, tokens_per_second, 0, 0};
  out.duration_s = cost.run_tokens / tokens_per_second;
  out.price = out.duration_s / seconds_per_hour * ranks * cost.per_gpu_hour;
  return out;
}

CaseSaving saving_of(const CostEstimate& estimate, const CaseSummary& row, int ranks) {
  const CaseCost& before = estimate.before;
  CaseSaving saving;
  saving.after = cost_of(estimate.cost, row.name, ranks, before.tokens_per_second / row.effect->ratio);
  saving.after.tokens_per_second = row.tokens_per_second;  // as measured, and as the table of cases has it
  // Price of a token after over that before: the time's ratio, and that of the GPUs where their number was changed.
  const double gpus = static_cast<double>(ranks) / before.ranks;
  const double center = row.effect->ratio * gpus, best = row.effect->low * gpus, worst = row.effect->high * gpus;
  saving.gpus_recovered = before.ranks * (1 / center - 1);
  saving.gpus_low = before.ranks * (1 / worst - 1);
  saving.gpus_high = before.ranks * (1 / best - 1);
  saving.saved_share = 1 - center;
  saving.saved_share_low = 1 - worst;
  saving.saved_share_high = 1 - best;
  saving.saved_run = before.price - saving.after.price;
  saving.saved_yearly = before.ranks * hours_per_year * estimate.cost.per_gpu_hour * saving.saved_share;
  return saving;
}

}  // namespace

std::vector<std::string> fired_rules(const Breakdown& step) {
  std::vector<std::string> fired;
  if (!(step.step_s > 0)) return fired;
  communication(step, fired);
  idle(step, fired);
  return fired;
}

std::optional<CostEstimate> estimate_cost(const store::Result& result, const Summary& summary,
                                          const config::Cost& cost) {
  const CaseSummary* baseline = summary.baseline();
  if (baseline == nullptr || baseline->blocks == 0 || !(baseline->tokens_per_second > 0)) return {};
  const int ranks = result.at(*baseline).ranks;
  if (ranks < 1) return {};
  CostEstimate out;
  out.cost = cost;
  out.steps = summary.predicted ? 0 : baseline->blocks * result.steps;
  out.confidence = result.confidence;
  out.ranks_are_gpus = result.ranks_are_gpus();
  out.before = cost_of(cost, baseline->name, ranks, baseline->tokens_per_second);
  out.predicted = summary.predicted;
  if (summary.unreliable) return out;
  for (const CaseSummary* row : out.predicted ? summary.predicted_changes() : summary.proven_changes()) {
    if (result.at(*row).ranks >= 1) out.after.push_back(saving_of(out, *row, result.at(*row).ranks));
  }
  std::ranges::stable_sort(out.after, std::ranges::greater(), &CaseSaving::saved_share);
  return out;
}

Findings find_all(const store::Result& result) {
  Findings findings;
  findings.summary = summarise(result);
  const bool predicted = findings.summary.predicted;
  for (const CaseSummary* row : predicted ? findings.summary.predicted_changes() : findings.summary.proven_changes()) {
    if (config::purpose_of(result.at(*row).variable) == config::Purpose::scale || findings.summary.unreliable) continue;
    findings.best_case = row->case_index;
    findings.best_reference = result.at(*row).reference;
    break;
  }
  findings.stragglers = find_stragglers(result);
  for (CaseBreakdown& breakdown : break_down(result)) {
    StepFindings& step = findings.steps.emplace_back();
    step.case_index = breakdown.case_index;
    step.waterfall = waterfall(result, findings.summary.at(breakdown), breakdown);
    step.bottleneck =
        find_bottleneck(result, breakdown, step.waterfall ? &*step.waterfall : nullptr, findings.stragglers);
    step.rules = fired_rules(breakdown.mean);
    step.spans = spans_of_case(result, breakdown.case_index);
    step.breakdown = std::move(breakdown);
  }
  return findings;
}

const CaseSummary* Findings::baseline() const {
  const CaseSummary* baseline = best_reference ? &summary.case_at(*best_reference) : summary.baseline();
  return baseline != nullptr && baseline->blocks > 0 ? baseline : nullptr;
}

std::vector<const CaseSummary*> Findings::before_and_after() const {
  std::vector<const CaseSummary*> both{baseline(), best()};
  std::erase(both, nullptr);
  return both;
}

const StepFindings* Findings::step_of_case(std::int32_t case_index) const {
  const auto found = std::ranges::find(steps, case_index, &StepFindings::case_index);
  return found == steps.end() ? nullptr : &*found;
}

}  // namespace harness::analysis
