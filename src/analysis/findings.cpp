#include "analysis/findings.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <set>
#include <span>

#include "analysis/blocks.h"
#include "analysis/cases.h"
#include "base/median.h"
#include "base/units.h"
#include "config/experiment.h"
#include "config/registry.h"

namespace harness::analysis {
namespace {

// The usual thresholds.
constexpr double max_communication = 0.5;    // of the step
constexpr double max_per_computation = 0.3;  // communication over computation
// From the tenth to the ninetieth percentile, of the median: the range would grow with the number of values.
constexpr double max_step_spread = 0.10;   // of timed steps
constexpr double max_block_spread = 0.10;  // of blocks, which are runs of their own
constexpr double high_utilisation = 0.90, low_mfu = 0.30;
constexpr double max_idle = 0.02;         // of the step, in one place
constexpr double min_beyond_node = 0.90;  // efficiency per rank, of that on one node
constexpr double min_of_batch = 1.05;     // tokens/s for at least twice the batch

// Between neighbours in proportion, so that few values give a range that is no wider than that of many.
double quantile(std::span<const double> sorted, double share) {
  const double place = share * static_cast<double>(sorted.size() - 1);
  const auto below = static_cast<std::size_t>(place);
  const std::size_t above = std::min(below + 1, sorted.size() - 1);
  return std::lerp(sorted[below], sorted[above], place - static_cast<double>(below));
}

double spread_of(std::span<const double> sorted) {
  return quantile(sorted, 0.9) - quantile(sorted, 0.1);
}

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

void step_spread(std::span<const double> steps, std::vector<std::string>& fired) {
  if (steps.size() < 10) return;
  const double spread = spread_of(steps);
  if (spread <= max_step_spread) return;
  fired.push_back(
      fmt::format("Step times within a block spread by {} (10th to 90th percentile): more than 10 %. Something "
                  "interferes from step to step: other jobs, the network, or too few cores.",
                  percent(spread)));
}

void block_spread(std::span<const FinishedBlock> blocks, std::vector<std::string>& fired) {
  std::vector<double> seconds;
  for (const FinishedBlock& block : blocks) seconds.push_back(block.seconds);
  if (seconds.size() < 2) return;
  std::ranges::sort(seconds);
  const double spread = spread_of(seconds) / median(seconds);
  if (spread <= max_block_spread) return;
  fired.push_back(fmt::format(
      "Blocks of this case, each a fresh run of the same step, spread by {} (10th to 90th percentile): more "
      "than 10 %. A single run would tell little.",
      percent(spread)));
}

int nodes_of(const store::Result& result, std::int32_t case_index) {
  std::set<int> nodes;
  for (const store::ResultRole& row : store::roles_of(result, case_index)) nodes.insert(row.node);
  return static_cast<int>(nodes.size());
}

void beyond_a_node(const store::Result& result, const Summary& summary, std::vector<std::string>& fired) {
  const CaseSummary *one_node = nullptr, *worst = nullptr;
  const auto per_rank = [&](const CaseSummary& row) { return row.tokens_per_second / result.at(row).ranks; };
  bool swept = false;
  for (const CaseSummary& row : summary.cases) {
    const store::ResultCase& result_case = result.at(row);
    const bool scales = config::purpose_of(result_case.variable) == config::Purpose::scale;
    if (!(row.tokens_per_second > 0) || (row.role != store::CaseRole::baseline && !scales)) continue;
    swept = swept || scales;
    const bool within = nodes_of(result, row.case_index) == 1;
    if (within && (one_node == nullptr || per_rank(row) > per_rank(*one_node))) one_node = &row;
    if (!within && (worst == nullptr || per_rank(row) < per_rank(*worst))) worst = &row;
  }
  if (!swept || one_node == nullptr || worst == nullptr) return;
  const double efficiency = per_rank(*worst) / per_rank(*one_node);
  if (efficiency >= min_beyond_node) return;
  fired.push_back(
      fmt::format("In {} ({} nodes) a rank processes {} of the tokens that it processes in {} (one node): efficiency "
                  "falls beyond one node. Look at the network between nodes first.",
                  worst->name, nodes_of(result, worst->case_index), percent(efficiency), one_node->name));
}

void batch(const store::Result& result, const Summary& summary, std::vector<std::string>& fired) {
  const CaseSummary* baseline = summary.baseline();
  if (baseline == nullptr || !(baseline->tokens_per_second > 0)) return;
  for (const CaseSummary& row : summary.cases) {
    if (row.blocks == 0 || result.at(row).variable == config::combination) continue;
    const double larger = result.at(row).tokens_per_step / result.at(*baseline).tokens_per_step;
    const double more = row.tokens_per_second / baseline->tokens_per_second;
    if (!(larger >= 2) || more >= min_of_batch) continue;
    fired.push_back(
        fmt::format("{}: {:.3g} times the batch gives {:.2f} times the tokens/s. The costs that a step pays once "
                    "(gradient reduction, bubble, launches) do not limit it, or the larger batch adds other costs.",
                    row.name, larger, more));
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
  communication(step, fired);
  idle(step, fired);
  return fired;
}

std::vector<std::string> fired_rules(const store::Result& result, const Summary& summary,
                                     const CaseBreakdown& breakdown) {
  if (!(breakdown.mean.step_s > 0)) return {};
  std::vector<std::string> fired = fired_rules(breakdown.mean);
  const std::vector<FinishedBlock> blocks = finished_blocks(result, breakdown.case_index);
  step_spread(steps_over_median(result, breakdown.case_index), fired);
  block_spread(blocks, fired);
  const CaseSummary& row = summary.at(breakdown);
  if (row.gpu_utilisation > high_utilisation && row.mfu && *row.mfu < low_mfu) {
    fired.push_back(fmt::format(
        "NVML reports GPU utilisation of {}, but MFU is {}: utilisation counts the time in which any kernel "
        "runs, not how much of the GPU it uses.",
        percent(row.gpu_utilisation), percent(*row.mfu)));
  }
  return fired;
}

std::vector<std::string> fired_rules(const store::Result& result, const Summary& summary) {
  std::vector<std::string> fired;
  beyond_a_node(result, summary, fired);
  batch(result, summary, fired);
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
  findings.rules = fired_rules(result, findings.summary);
  for (CaseBreakdown& breakdown : break_down(result)) {
    StepFindings& step = findings.steps.emplace_back();
    step.case_index = breakdown.case_index;
    step.waterfall = waterfall(result, findings.summary.at(breakdown), breakdown);
    step.bottleneck =
        find_bottleneck(result, breakdown, step.waterfall ? &*step.waterfall : nullptr, findings.stragglers);
    step.rules = fired_rules(result, findings.summary, breakdown);
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
