#include "analysis/cost.h"

#include <algorithm>
#include <cmath>

#include "analysis/pairing.h"

namespace harness {
namespace {

constexpr double seconds_per_hour = 3600;
constexpr double hours_per_year = 365.25 * 24;

CaseCost cost_of(const Cost& cost, const std::string& name, int ranks, double tokens_per_second) {
  CaseCost out{name, ranks, tokens_per_second, 0, 0};
  out.duration_s = cost.run_tokens / tokens_per_second;
  out.price = out.duration_s / seconds_per_hour * ranks * cost.per_gpu_hour;
  return out;
}

int timed_steps(const Result& result, int case_index) {
  int blocks = 0;
  for (std::size_t i = 0; i < result.blocks.size(); ++i) {
    blocks += result.blocks[i].case_index == case_index && block_median(result, i).has_value();
  }
  return blocks * result.steps;
}

}  // namespace

std::optional<CostEstimate> estimate_cost(const Result& result, const Summary& summary, const Cost& cost) {
  const int baseline = find_case(result, "baseline");
  if (baseline < 0) return {};
  const CaseSummary& before = summary.cases[static_cast<std::size_t>(baseline)];
  if (before.blocks == 0 || !(before.tokens_per_second > 0)) return {};
  const int ranks = result.cases[static_cast<std::size_t>(baseline)].ranks;
  if (ranks < 1) return {};
  CostEstimate out;
  out.cost = cost;
  out.steps = timed_steps(result, baseline);
  out.backend_has_gpus = result.backend != "cpu";
  out.before = cost_of(cost, before.name, ranks, before.tokens_per_second);
  if (summary.unreliable) return out;
  for (const CaseSummary& one : summary.cases) {
    const int its_ranks = result.cases[static_cast<std::size_t>(one.case_index)].ranks;
    if (one.name == "baseline_again" || !one.effect || one.effect->verdict != Verdict::faster || its_ranks < 1)
      continue;
    CaseSaving saving;
    saving.after = cost_of(cost, one.name, its_ranks, before.tokens_per_second / one.effect->ratio);
    // Price of a token after over that before: the time's ratio, and that of the GPUs where their number was changed.
    const double gpus = static_cast<double>(its_ranks) / ranks;
    const double center = one.effect->ratio * gpus, best = one.effect->low * gpus, worst = one.effect->high * gpus;
    saving.gpus_recovered = ranks * (1 / center - 1);
    saving.gpus_low = ranks * (1 / worst - 1);
    saving.gpus_high = ranks * (1 / best - 1);
    saving.saved_share = 1 - center;
    saving.saved_share_low = 1 - worst;
    saving.saved_share_high = 1 - best;
    saving.saved_run = out.before.price - saving.after.price;
    saving.saved_yearly = ranks * hours_per_year * cost.per_gpu_hour * saving.saved_share;
    out.after.push_back(std::move(saving));
  }
  std::stable_sort(out.after.begin(), out.after.end(),
                   [](const CaseSaving& a, const CaseSaving& b) { return a.saved_share > b.saved_share; });
  return out;
}

}  // namespace harness
