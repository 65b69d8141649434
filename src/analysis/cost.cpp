#include "analysis/cost.h"

#include <algorithm>

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

std::optional<CostEstimate> estimate_cost(const store::Result& result, const Summary& summary,
                                          const config::Cost& cost) {
  const CaseSummary* baseline = summary.baseline();
  if (baseline == nullptr || baseline->blocks == 0 || !(baseline->tokens_per_second > 0)) return {};
  const int ranks = result.at(*baseline).ranks;
  if (ranks < 1) return {};
  CostEstimate out;
  out.cost = cost;
  out.steps = baseline->blocks * result.steps;
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

}  // namespace harness::analysis
