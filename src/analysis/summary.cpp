#include "analysis/summary.h"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <limits>

#include "analysis/cases.h"
#include "base/median.h"

namespace harness::analysis {
namespace {

void measure_losses(const store::Result& result, std::span<const FinishedBlock> blocks, CaseSummary& row) {
  row.first_loss = store::not_known;
  double last_losses = 0;
  int n = 0;
  for (const FinishedBlock& block : blocks) {
    if (block.index >= result.losses.size() || result.losses[block.index].empty()) continue;
    const std::vector<float>& losses = result.losses[block.index];
    if (n++ == 0) row.first_loss = losses.front();
    last_losses += losses.back();
  }
  row.last_loss = last_losses / n;  // NaN if there is none
}

void measure_case(const store::Result& result, CaseSummary& row) {
  const store::ResultCase& result_case = result.at(row);
  const std::vector<FinishedBlock> blocks = finished_blocks(result, row.case_index);
  std::vector<double> medians;
  for (const FinishedBlock& block : blocks) {
    medians.push_back(block.seconds);
    row.peak_memory_bytes = std::max(row.peak_memory_bytes, result.blocks[block.index].peak_memory_bytes);
  }
  row.blocks = static_cast<int>(medians.size());
  row.step_seconds = median(medians);
  row.tails = tails_of(result, row.case_index);
  measure_losses(result, blocks, row);
  if (medians.empty()) return;
  row.tokens_per_second = result_case.tokens_per_step / row.step_seconds;
  const double rank_seconds = row.step_seconds * result_case.ranks;
  if (!(rank_seconds > 0)) return;
  row.flops_per_rank = result_case.model_flop_per_step / rank_seconds;
  // An unknown peak, or a step without counted FLOP, makes MFU absent, never wrong.
  if (!(result_case.peak_flops_per_rank > 0 && result_case.model_flop_per_step > 0)) return;
  const double possible = rank_seconds * result_case.peak_flops_per_rank;
  row.mfu = result_case.model_flop_per_step / possible;
  row.mfu_noncausal = result_case.noncausal_flop_per_step / possible;
  row.hfu = result_case.hardware_flop_per_step / possible;
}

void measure_rates(const store::Result& result, CaseSummary& row) {
  const store::ResultPoint* point = result.find_point(row.case_index);
  if (point == nullptr || row.blocks == 0 || point->repetitions < 1) return;
  Rates rates;
  rates.operation = point->operation;
  rates.bytes = point->bytes;
  rates.operation_seconds = row.step_seconds / static_cast<double>(point->repetitions);
  rates.algorithm_bytes_per_s = point->bytes / rates.operation_seconds;
  rates.count = point->count;
  if (point->bus_factor > 0) rates.bus_bytes_per_s = rates.algorithm_bytes_per_s * point->bus_factor;
  if (point->limit_bytes_per_s > 0) rates.limit_bytes_per_s = point->limit_bytes_per_s;
  // A measured peak reflects an earlier state of this machine; only a stated one is a limit.
  const bool peak_stated = !result.peak_source.starts_with("measured");
  const bool on_links = rates.bus_bytes_per_s && rates.limit_bytes_per_s;
  rates.impossible = (on_links && *rates.bus_bytes_per_s > beyond_doubt * *rates.limit_bytes_per_s) ||
                     (peak_stated && above_peak(row));
  row.rates = rates;
}

void measure_gpu(const store::Result& result, CaseSummary& row) {
  const double tokens = result.at(row).tokens_per_step * result.steps;
  const auto median_of = [&](const auto& value) {
    std::vector<double> values;
    for (const std::size_t i : good_blocks(result, result.gpu.size())) {
      const double of_block = value(result.gpu[i]);
      if (result.blocks[i].case_index == row.case_index && std::isfinite(of_block)) values.push_back(of_block);
    }
    return median(values);
  };
  using Gpu = store::ResultGpu;
  row.gpu_utilisation = median_of([](const Gpu& gpu) { return gpu.together.mean_utilisation; });
  row.sm_clock_hz = median_of([](const Gpu& gpu) { return gpu.together.mean_sm_clock_hz; });
  row.power_w = median_of([](const Gpu& gpu) { return gpu.together.mean_power_w; });
  row.tokens_per_joule = median_of([&](const Gpu& gpu) {
    const bool of_all = gpu.ranks >= result.at(row).ranks;  // the energy is that of the GPUs that reported
    return of_all && gpu.together.energy_j > 0 ? tokens / gpu.together.energy_j : NAN;
  });
}

CaseSummary measured(const store::Result& result, std::int32_t case_index) {
  const store::ResultCase& result_case = result.case_at(case_index);
  CaseSummary row;
  row.case_index = case_index;
  row.role = result_case.role();
  row.name = result_case.name;
  row.status = result_case.status;
  row.reason = result_case.reason;
  measure_case(result, row);
  measure_rates(result, row);
  measure_gpu(result, row);
  row.another_training = asks_for_another_training(result, case_index);
  row.trains_differently = why_trains_differently(result, case_index);
  for (const store::ResultNcclFact& fact : result.nccl_facts) {  // what it asked NCCL for and did not get
    if (fact.case_index != case_index || fact.name != "not honoured") continue;
    row.reason += (row.reason.empty() ? "" : "; ") + ((row.honoured ? "not honoured: " : "") + fact.value);
    row.honoured = false;
  }
  return row;
}

Evidence evidence_of(const CaseSummary& row, bool predicted) {
  return {.role = row.role,
          .status = row.status,
          .measured = row.blocks > 0,
          .honoured = row.honoured,
          .within_limit = predicted || !(row.rates && row.rates->impossible),
          .trains_alike = row.trains_differently.empty(),
          .predicted = predicted};
}

// Fills in the effects and verdicts of all cases.
void compare_with_baseline(const store::Result& result, Summary& summary) {
  const std::vector<SweepBlocks> sweeps = comparable_blocks(result);
  const std::vector<Question> questions = questions_of(result);
  const Estimator estimator = estimator_named(result.interval);
  summary.looks = looks_of(result);
  std::vector<Estimate> answers(questions.size());
  for (const SweepBlocks& sweep : sweeps) {
    std::vector<Question> asked;
    std::ranges::copy_if(questions, std::back_inserter(asked), [&](const Question& question) {
      return result.case_at(question.case_index).reference == sweep.baseline;
    });
    const SweepEstimate estimate = look_by_look(sweep, asked, summary.looks, estimator);
    if (estimate.level) summary.levels.push_back(*estimate.level);
    for (std::size_t i = 0; i < asked.size(); ++i)
      answers[static_cast<std::size_t>(asked[i].case_index)] = estimate.answers[i];
  }
  if (!sweeps.empty() && sweeps.front().control != no_case)
    summary.noise = standard_deviation(paired_log_ratios(sweeps.front(), sweeps.front().control));
  for (std::size_t i = 0; i < summary.cases.size(); ++i) {
    CaseSummary& row = summary.cases[i];
    const Evidence evidence = evidence_of(row, summary.predicted);
    row.judgement = decide(answers[i].log_ratio, result.smallest_effect, evidence);
    if (store::is_reference(row.role)) continue;
    row.settled_after = answers[i].settled_after;
    row.effect = effect_of(answers[i], result.smallest_effect, evidence);
    const bool is_first = !summary.control || !moved(summary.control->verdict);
    if (row.role == store::CaseRole::control && row.effect &&
        (!summary.control || (is_first && moved(row.effect->verdict))))
      summary.control = row.effect;
  }
}

// Whether the change is predicted to be faster per unit of work, by more than the error of predictions.
bool is_predicted_faster(const CaseSummary& row) {
  return row.judgement.reason == Reason::predicted && row.effect && row.effect->ratio < 1 && !row.another_training;
}

bool is_size(const store::ResultCase& row) {
  return row.role() == store::CaseRole::point;
}

}  // namespace

std::optional<Effect> effect_of(const Estimate& estimate, double smallest_effect, const Evidence& evidence) {
  if (estimate.log_ratio.n == 0) return {};
  const bool is_open = verdict_of(estimate.log_ratio, smallest_effect) == Verdict::unresolved;
  return Effect{.verdict = decide(estimate.log_ratio, smallest_effect, evidence).verdict,
                .ratio = std::exp(estimate.log_ratio.center),
                .low = std::exp(estimate.log_ratio.low),
                .high = std::exp(estimate.log_ratio.high),
                .rounds = estimate.log_ratio.n,
                .rounds_needed = is_open ? estimate.rounds_needed : 0,
                .two_states = estimate.two_states};
}

Summary summarise(const store::Result& result) {
  Summary summary;
  summary.throttled_rounds = throttled_rounds(result);
  for (std::int32_t i = 0; i < result.case_count(); ++i) summary.cases.push_back(measured(result, i));
  summary.predicted = is_predicted(result.interval);
  compare_with_baseline(result, summary);
  summary.failed_cases =
      static_cast<int>(std::ranges::count(summary.cases, store::CaseStatus::failed, &CaseSummary::status));
  for (const store::ResultBlock& block : result.blocks) {
    if (block.status == store::BlockStatus::failed && result.at(block).status != store::CaseStatus::failed)
      summary.lost.push_back({block.case_index, block.round, block.reason});
  }
  summary.partial = result.state == store::RunState::partial || first_open_round(result) < result.rounds;
  summary.unreliable = summary.control && moved(summary.control->verdict);
  summary.warnings = result.warnings;
  find_warnings(result, summary, summary.warnings);
  return summary;
}

bool is_unresolved(const CaseSummary& row) {
  return row.role == store::CaseRole::change && row.judgement.verdict == Verdict::unresolved &&
         row.judgement.reason == Reason::interval;
}

bool has_too_few_rounds(const CaseSummary& row) {
  return row.role == store::CaseRole::change && row.judgement.reason == Reason::too_few_rounds;
}

bool needs_rounds(const CaseSummary& row) {
  return store::may_run(row.status) && (is_unresolved(row) || has_too_few_rounds(row));
}

bool is_proven(const CaseSummary& row) {
  return row.role == store::CaseRole::change && store::may_run(row.status) && row.effect &&
         row.effect->verdict == Verdict::faster;
}

bool is_improvement(const CaseSummary& row) {
  return is_proven(row) && !row.another_training;
}

std::vector<const CaseSummary*> Summary::improvements() const {
  std::vector<const CaseSummary*> found;
  for (const CaseSummary& row : cases) {
    if (is_improvement(row) || is_predicted_faster(row)) found.push_back(&row);
  }
  std::ranges::stable_sort(found, {}, [](const CaseSummary* row) { return row->effect->ratio; });
  return found;
}

const CaseSummary* Summary::baseline() const {
  const auto found = std::ranges::find(cases, store::CaseRole::baseline, &CaseSummary::role);
  return found == cases.end() ? nullptr : &*found;
}

int exit_code(const Summary& summary) {
  const bool verdict_lost = !summary.lost.empty() && std::ranges::any_of(summary.cases, has_too_few_rounds);
  return summary.failed_cases > 0 || verdict_lost || summary.unreliable ? 4 : 0;
}

bool sweeps_sizes_alone(const store::Result& result) {
  const auto is_change = [](const store::ResultCase& row) { return row.role() == store::CaseRole::change; };
  return std::ranges::any_of(result.cases, is_size) && std::ranges::none_of(result.cases, is_change);
}

bool is_grid(const store::Result& result) {
  return std::ranges::any_of(result.cases, is_size) && !sweeps_sizes_alone(result);
}

std::vector<const CaseSummary*> by_size(const store::Result& result, const Summary& summary) {
  std::vector<const CaseSummary*> rows;
  for (const CaseSummary& row : summary.cases) {
    if (store::is_reference(row.role)) rows.push_back(&row);
  }
  const auto bytes = [&](const CaseSummary* row) {
    const store::ResultPoint* point = result.find_point(row->case_index);
    return point == nullptr ? std::numeric_limits<double>::infinity() : point->bytes;
  };
  std::ranges::stable_sort(rows, {}, bytes);
  return rows;
}

std::optional<double> average_bus_bandwidth(const store::Result& result, const Summary& summary) {
  double sum = 0;
  int sizes = 0;
  for (const CaseSummary* row : by_size(result, summary)) {
    if (!row->rates || !row->rates->bus_bytes_per_s) continue;
    sum += *row->rates->bus_bytes_per_s;
    ++sizes;
  }
  if (sizes < 2) return std::nullopt;
  return sum / sizes;
}

int failed_blocks(const store::Result& result, std::int32_t case_index) {
  return static_cast<int>(std::ranges::count_if(result.blocks, [&](const store::ResultBlock& block) {
    return block.case_index == case_index && block.status == store::BlockStatus::failed;
  }));
}

}  // namespace harness::analysis
