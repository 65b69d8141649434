#include "analysis/findings.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <tuple>

#include "analysis/cases.h"
#include "analysis/verdict.h"
#include "base/median.h"
#include "base/text.h"
#include "config/experiment.h"
#include "config/registry.h"

namespace harness::analysis {
namespace {

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
  saving.after.tokens_per_second = row.tokens_per_second;  // as measured, and as in the table of cases
  // The ratio of token prices, after over before: the ratio of times, times that of the GPUs if their number changed.
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

constexpr std::size_t max_stragglers = 16;
constexpr double min_late_share = 0.02;  // share of the step: less is normal
constexpr double late_often = 2.0 / 3;   // share of the steps examined
constexpr double beyond_scatter = 3;     // multiples of the others' median deviation
constexpr double chance = 0.05;          // that some rank is the latest this often if lateness is random
// One step suffices if the others agree this closely and the late rank is this far off.
constexpr double flagrant_share = 0.1, flagrant_scatter = 10;

// How late a rank was in the profiled steps: its own time (computing and idle) beyond the median of its peers.
struct Lateness {
  Straggler sum;  // its times and its share of the step are sums over cases
  std::int32_t cases = 0;
  std::int32_t among_several = 0, flagrant_cases = 0;  // cases with several peers to compare
  double expected = 0;                                 // sum over cases of the chance to be the latest of its peers
};

// Returns each value minus the median of the others.
std::vector<double> beyond_others(const std::vector<double>& values) {
  std::vector<double> sorted = values;
  std::ranges::sort(sorted);
  const std::size_t others = values.size() - 1;
  std::vector<double> beyond;
  for (const double value : values) {
    const auto place = static_cast<std::size_t>(std::ranges::lower_bound(sorted, value) - sorted.begin());
    const auto other = [&](std::size_t i) { return sorted[i < place ? i : i + 1]; };
    beyond.push_back(value - (other((others - 1) / 2) + other(others / 2)) / 2);
  }
  return beyond;
}

// Returns the others' median deviation from the median of all; 0 if there is only one other.
double scatter_of_others(const std::vector<double>& values, std::size_t left_out) {
  if (values.size() <= 2) return 0;
  const double middle = median(values);
  std::vector<double> deviations;
  for (std::size_t i = 0; i < values.size(); ++i) {
    if (i != left_out) deviations.push_back(std::abs(values[i] - middle));
  }
  return median(deviations);
}

using Splits = std::map<std::int32_t, const store::ResultSplit*>;  // by rank

// Compares ranks of one case that do equal work.
void compare_alike(const CaseRanks::Ranks& ranks, const Splits& splits, double step_s, std::vector<Lateness>& late) {
  std::vector<double> own, compute, idle;
  for (const std::int32_t rank : ranks) {
    const store::ResultSplit& split = *splits.at(rank);
    compute.push_back(split.compute_s);
    idle.push_back(split.idle_s);
    own.push_back(split.compute_s + split.idle_s);
  }
  const auto latest = static_cast<std::size_t>(std::ranges::max_element(own) - own.begin());
  const double scatter = scatter_of_others(own, latest);
  const bool several = ranks.size() > 2;
  const std::vector<double> late_s = beyond_others(own), compute_s = beyond_others(compute),
                            idle_s = beyond_others(idle);
  for (std::size_t i = 0; i < ranks.size(); ++i) {
    Lateness& l = late[ranks[i]];
    ++l.cases;
    if (several) ++l.among_several;
    l.expected += 1 / static_cast<double>(ranks.size());
    l.sum.late_s += late_s[i];
    l.sum.late_share += late_s[i] / step_s;
    l.sum.compute_s += compute_s[i];
    l.sum.idle_s += idle_s[i];
    if (i != latest || late_s[i] <= min_late_share * step_s || late_s[i] <= beyond_scatter * scatter) continue;
    ++l.sum.late_cases;
    if (several && late_s[i] > flagrant_share * step_s && late_s[i] > flagrant_scatter * scatter) ++l.flagrant_cases;
  }
}

// Returns lateness by rank. Adds to `cases` the number of profiled steps that could tell.
std::vector<Lateness> lateness(const store::Result& result, std::int32_t& cases) {
  std::vector<Lateness> late(result.rank_count());
  std::map<std::int32_t, Splits> by_case;
  for (const store::ResultSplit& split : result.splits) by_case[split.case_index][split.rank] = &split;
  for (const auto& [case_index, splits] : by_case) {
    const CaseRanks ranks(result, case_index);
    const bool complete = std::ssize(splits) == ranks.count() && ranks.count() <= result.ranks &&
                          splits.begin()->first == 0 && splits.rbegin()->first == ranks.count() - 1;
    double step_s = 0;
    for (const auto& [rank, split] : splits) step_s = std::max(step_s, split->step_s);
    const auto has_others = [](const CaseRanks::Ranks& alike) { return alike.size() > 1; };
    if (!complete || !(step_s > 0) || std::ranges::none_of(ranks.alike(), has_others)) continue;
    ++cases;
    for (const CaseRanks::Ranks& alike : ranks.alike()) {
      if (has_others(alike)) compare_alike(alike, splits, step_s, late);
    }
  }
  return late;
}

// Whether a rank is late often enough, and either not by chance or by a flagrant margin. `ranks`: how many the job has.
bool is_straggler(const Lateness& late, std::int32_t ranks) {
  const std::int32_t often = late.sum.late_cases;
  if (often < late_often * late.cases || late.sum.late_share <= min_late_share * late.cases) return false;
  if (late.flagrant_cases > 0 && late.flagrant_cases >= late_often * late.among_several) return true;
  const double by_chance = binomial_upper_tail(late.cases, often, late.expected / late.cases);
  return ranks * by_chance < chance;
}

Straggler straggler_of(const store::Result& result, std::int32_t rank, const Lateness& late) {
  Straggler straggler = late.sum;
  straggler.rank = rank;
  straggler.named = is_straggler(late, result.ranks);
  for (double* of_cases : {&straggler.late_s, &straggler.late_share, &straggler.compute_s, &straggler.idle_s})
    *of_cases /= late.cases;
  const auto row = std::ranges::find(result.rank_table, rank, &store::ResultRank::rank);
  if (row == result.rank_table.end()) return straggler;
  straggler.host = row->host;
  straggler.device = row->device;
  return straggler;
}

}  // namespace

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
  for (const CaseSummary* row : summary.improvements()) {
    if (result.at(*row).ranks >= 1) out.after.push_back(saving_of(out, *row, result.at(*row).ranks));
  }
  std::ranges::stable_sort(out.after, std::ranges::greater(), &CaseSaving::saved_share);
  return out;
}

Findings find_all(const store::Result& result) {
  Findings findings;
  findings.summary = summarise(result);
  for (const CaseSummary* row : findings.summary.improvements()) {
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
    step.spans = spans_of_case(result, breakdown.case_index);
    step.breakdown = std::move(breakdown);
  }
  return findings;
}

const CaseSummary* Findings::baseline() const {
  const CaseSummary* baseline = best_reference ? &summary.case_at(*best_reference) : summary.baseline();
  return baseline != nullptr && baseline->blocks > 0 ? baseline : nullptr;
}

Stragglers find_stragglers(const store::Result& result) {
  Stragglers found;
  const std::vector<Lateness> late = lateness(result, found.cases);
  if (found.cases == 0) return found;
  for (std::int32_t rank = 0; rank < result.ranks; ++rank) {
    const Lateness& own = late[static_cast<std::size_t>(rank)];
    found.late_share.push_back(own.cases > 0 ? own.sum.late_share / own.cases : NAN);
    if (own.cases > 0) found.ranks.push_back(straggler_of(result, rank, own));
  }
  std::ranges::stable_sort(found.ranks, std::ranges::greater(),
                           [](const Straggler& s) { return std::tuple(s.named, s.late_s); });
  if (found.ranks.size() > max_stragglers) found.ranks.resize(max_stragglers);
  found.evidence = fmt::format(
      "Evidence: the {} of {}. In each, a rank's own time (computing or idle) is compared with the median of the ranks "
      "that do the same work; early ranks wait in communication for late ones.",
      step_in_parts(result), plural(found.cases, "case"));
  return found;
}

}  // namespace harness::analysis
