#include "analysis/analysis.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "analysis/pairing.h"
#include "analysis/warnings.h"

namespace harness {
namespace {

constexpr double nan = std::numeric_limits<double>::quiet_NaN();

bool is_baseline(const ResultCase& one) {
  return one.name == "baseline" || one.name == "baseline_again";
}

// The family over which false verdicts are kept at 5 %: what was declared before the first result, not what got one.
int declared_comparisons(const Result& result) {
  return static_cast<int>(std::count_if(result.cases.begin(), result.cases.end(), [](const ResultCase& one) {
    return !is_baseline(one) && one.status != CaseStatus::impossible;
  }));
}

// What a case's step gets done, in units that cases are compared by: tokens; bytes on the bus of a collective; FLOP of
// a rank. 0: not known.
double work_of(const Result& result, int index) {
  const ResultCase& one = result.cases[static_cast<std::size_t>(index)];
  if (one.tokens_per_step > 0) return one.tokens_per_step;
  const ResultPoint* point = find_point(result, index);
  if (point == nullptr) return 0;
  const auto times = static_cast<double>(point->repetitions);
  return point->bus_factor > 0 ? times * point->bytes * point->bus_factor : one.model_flop_per_step / one.ranks;
}

// Seconds per unit of work when the cases' steps hold different amounts of it, else the step's seconds: a larger batch
// or message is not slower for taking longer.
Pairs comparable_pairs(const Result& result, int baseline, int changed, const std::vector<std::int32_t>& without = {}) {
  Pairs pairs = pair_blocks(result, baseline, changed, without);
  const double before = work_of(result, baseline), after = work_of(result, changed);
  if (before > 0 && after > 0) {
    for (double& seconds : pairs.second) seconds *= before / after;
  }
  return pairs;
}

void measure_case(const Result& result, CaseSummary& summary) {
  const ResultCase& one = result.cases[static_cast<std::size_t>(summary.case_index)];
  std::vector<double> medians, last_losses;
  for (std::size_t i = 0; i < result.blocks.size(); ++i) {
    if (result.blocks[i].case_index != summary.case_index) continue;
    const auto seconds = block_median(result, i);
    if (!seconds) continue;
    medians.push_back(*seconds);
    summary.peak_memory_bytes = std::max(summary.peak_memory_bytes, result.blocks[i].peak_memory_bytes);
    if (i >= result.losses.size() || result.losses[i].empty()) continue;
    if (last_losses.empty()) summary.first_loss = result.losses[i].front();
    last_losses.push_back(result.losses[i].back());
  }
  summary.blocks = static_cast<int>(medians.size());
  summary.step_seconds = median(medians);
  if (!last_losses.empty()) {
    summary.last_loss =
        std::accumulate(last_losses.begin(), last_losses.end(), 0.0) / static_cast<double>(last_losses.size());
  }
  if (medians.empty()) return;
  summary.tokens_per_second = one.tokens_per_step / summary.step_seconds;
  const double rank_seconds = summary.step_seconds * one.ranks;
  if (!(rank_seconds > 0)) return;
  summary.flops_per_rank = one.model_flop_per_step / rank_seconds;
  if (!(one.peak_flops_per_rank > 0)) return;  // an unknown peak makes MFU absent, never wrong
  const double possible = rank_seconds * one.peak_flops_per_rank;
  summary.mfu = one.model_flop_per_step / possible;
  summary.mfu_noncausal = one.noncausal_flop_per_step / possible;
  summary.hfu = one.hardware_flop_per_step / possible;
}

// A clock or a peak may be a little off; a link that carried a tenth more than it can did not.
constexpr double beyond_doubt = 1.05;

void measure_rates(const Result& result, CaseSummary& summary) {
  const ResultPoint* point = find_point(result, summary.case_index);
  if (point == nullptr || summary.blocks == 0 || point->repetitions < 1) return;
  Rates r;
  r.operation = point->operation;
  r.bytes = point->bytes;
  r.operation_seconds = summary.step_seconds / static_cast<double>(point->repetitions);
  r.algorithm_bytes_per_s = point->bytes / r.operation_seconds;
  if (point->bus_factor > 0) r.bus_bytes_per_s = r.algorithm_bytes_per_s * point->bus_factor;
  if (point->limit_bytes_per_s > 0) r.limit_bytes_per_s = point->limit_bytes_per_s;
  // A measured peak is what this machine did a while ago; only one that is stated is a limit.
  const bool peak_stated = !result.peak_source.starts_with("measured");
  const bool on_links = r.bus_bytes_per_s && r.limit_bytes_per_s;
  r.impossible = (on_links && *r.bus_bytes_per_s > beyond_doubt * *r.limit_bytes_per_s) ||
                 (peak_stated && summary.mfu && *summary.mfu > beyond_doubt);
  summary.rates = r;
}

void measure_gpu(const Result& result, CaseSummary& summary) {
  std::vector<double> utilisation, clock, power, tokens_per_joule;
  const double tokens = result.cases[static_cast<std::size_t>(summary.case_index)].tokens_per_step * result.steps;
  const auto keep = [](std::vector<double>& values, double value) {
    if (std::isfinite(value)) values.push_back(value);
  };
  for (std::size_t i = 0; i < std::min(result.blocks.size(), result.gpu.size()); ++i) {
    if (result.blocks[i].case_index != summary.case_index || result.blocks[i].status != BlockStatus::ok) continue;
    const ResultGpu& gpu = result.gpu[i];
    keep(utilisation, gpu.utilisation);
    keep(clock, gpu.sm_clock_hz);
    keep(power, gpu.power_w);
    if (gpu.energy_j > 0) keep(tokens_per_joule, tokens / gpu.energy_j);
  }
  summary.gpu_utilisation = median(utilisation);
  summary.sm_clock_hz = median(clock);
  summary.power_w = median(power);
  summary.tokens_per_joule = median(tokens_per_joule);
}

// What a case asked of NCCL and did not get, "" if nothing.
std::string not_honoured(const Result& result, int case_index) {
  std::string all;
  for (const ResultNcclFact& fact : result.nccl_facts) {
    if (fact.case_index != case_index || fact.name != "not honoured") continue;
    all += (all.empty() ? "" : "; ") + fact.value;
  }
  return all;
}

double deviation_of_log_ratios(const Pairs& pairs) {
  const std::size_t n = pairs.first.size();
  if (n < 2) return nan;
  std::vector<double> logs(n);
  double mean = 0;
  for (std::size_t i = 0; i < n; ++i) mean += (logs[i] = std::log(pairs.second[i] / pairs.first[i]));
  mean /= static_cast<double>(n);
  double squares = 0;
  for (const double value : logs) squares += (value - mean) * (value - mean);
  return std::sqrt(squares / static_cast<double>(n - 1));
}

// A case that failed or cannot run leaves blocks undone without making the sweep partial; it is reported as such.
bool blocks_missing(const Result& result) {
  return std::any_of(result.blocks.begin(), result.blocks.end(), [&](const ResultBlock& block) {
    const CaseStatus status = result.cases[static_cast<std::size_t>(block.case_index)].status;
    return block.status == BlockStatus::pending && status != CaseStatus::failed && status != CaseStatus::impossible;
  });
}

}  // namespace

Summary summarise(const Result& result, const SummaryOptions& options) {
  Summary summary;
  const int baseline = find_case(result, "baseline");
  const int comparisons = declared_comparisons(result);
  summary.noise = nan;
  summary.throttled_rounds = throttled_rounds(result);
  for (std::size_t i = 0; i < result.cases.size(); ++i) {
    const ResultCase& one = result.cases[i];
    CaseSummary row;
    row.case_index = static_cast<int>(i);
    row.name = one.name;
    row.status = one.status;
    row.reason = one.reason;
    row.first_loss = row.last_loss = nan;
    measure_case(result, row);
    measure_rates(result, row);
    measure_gpu(result, row);
    const std::string ignored = not_honoured(result, row.case_index);
    if (!ignored.empty()) row.reason += (row.reason.empty() ? "" : "; ") + ("not honoured: " + ignored);
    if (baseline >= 0 && row.case_index != baseline) {
      const Pairs pairs = comparable_pairs(result, baseline, row.case_index);
      const bool is_control = one.name == "baseline_again";
      const auto compared = [&](const Pairs& p) {
        return compare_paired(p.first, p.second, is_control ? 1 : comparisons, result.smallest_effect, 0.95,
                              options.interval);
      };
      if (!pairs.first.empty()) row.effect = compared(pairs);
      if (!summary.throttled_rounds.empty()) {
        const Pairs cool = comparable_pairs(result, baseline, row.case_index, summary.throttled_rounds);
        if (!cool.first.empty()) row.unthrottled = compared(cool);
      }
      if (row.effect && !ignored.empty() && !is_control) row.effect->verdict = Verdict::not_honoured;
      if (row.unthrottled && !ignored.empty() && !is_control) row.unthrottled->verdict = Verdict::not_honoured;
      if (row.effect && row.rates && row.rates->impossible && !is_control) row.effect->verdict = Verdict::none;
      if (is_control) {
        summary.control = row.effect;
        summary.noise = deviation_of_log_ratios(pairs);
      }
    }
    summary.failed_cases += one.status == CaseStatus::failed;
    summary.cases.push_back(std::move(row));
  }
  summary.partial = result.state == RunState::partial || blocks_missing(result);
  summary.unreliable =
      summary.control && (summary.control->verdict == Verdict::faster || summary.control->verdict == Verdict::slower);
  summary.warnings = result.warnings;
  for (auto& warning : find_warnings(result, summary)) summary.warnings.push_back(std::move(warning));
  return summary;
}

int exit_code(const Summary& summary) {
  return summary.failed_cases > 0 || summary.unreliable ? 4 : 0;
}

}  // namespace harness
