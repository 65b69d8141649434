#include "analysis/runs.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>
#include <string>

#include "base/error.h"

namespace harness::analysis {

std::optional<double> log_ratio_of(const CaseSummary& row) {
  if (!row.effect || row.effect->verdict == Verdict::not_honoured) return {};
  if (timed_something_else(row.judgement) || !std::isfinite(row.effect->ratio)) return {};
  return std::log(row.effect->ratio);
}

ConfidenceInterval interval_over_runs(std::span<const double> log_ratios, double alpha) {
  constexpr double no_trimming = 0;
  if (log_ratios.size() >= runs_for_an_interval) return yuen_interval(log_ratios, alpha, no_trimming);
  ConfidenceInterval interval;
  interval.n = static_cast<int>(log_ratios.size());
  if (!log_ratios.empty()) interval.center = std::reduce(log_ratios.begin(), log_ratios.end()) / interval.n;
  return interval;
}

double strictest_confidence(std::span<const ComparedFile> files) {
  double strictest = 0;
  for (const ComparedFile& file : files) strictest = std::max(strictest, file.result->confidence);
  return strictest;
}

void refuse_copies(std::span<const ComparedFile> files) {
  std::map<std::string, std::string> seen;
  for (const ComparedFile& file : files) {
    const auto [at, fresh] = seen.emplace(file.result->run_uuid, file.label);
    if (fresh) continue;
    fail("{} and {} hold the same run ({}). A run counts once: leave one of them out", at->second, file.label,
         file.result->run_uuid);
  }
}

}  // namespace harness::analysis
