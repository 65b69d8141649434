#include "analysis/paired_estimator.h"

#include <algorithm>
#include <cmath>
#include <map>

#include "analysis/power.h"

namespace harness::analysis {
namespace {

// By round. A round holds each case once.
std::map<std::int32_t, const FinishedBlock*> blocks_of(const SweepBlocks& sweep, std::int32_t case_index) {
  std::map<std::int32_t, const FinishedBlock*> by_round;
  for (const FinishedBlock& block : sweep.blocks) {
    if (block.case_index == case_index) by_round[block.round] = &block;
  }
  return by_round;
}

std::vector<double> log_ratios_of(const Pairs& pairs) {
  std::vector<double> log_ratios;
  for (std::size_t i = 0; i < pairs.first.size(); ++i) log_ratios.push_back(std::log(pairs.second[i] / pairs.first[i]));
  return log_ratios;
}

// How far the centre is from the nearer of the two thresholds: the half-width that would settle the matter.
double distance_to_threshold(const ConfidenceInterval& interval, double smallest_effect) {
  return std::abs(std::abs(interval.center) - std::log1p(smallest_effect));
}

Estimate with_trimmed_mean(std::span<const double> log_ratios, const Question& question) {
  Estimate estimate;
  estimate.pairs = static_cast<int>(log_ratios.size());
  estimate.deviation = standard_deviation(log_ratios);
  estimate.log_ratio = yuen_interval(log_ratios, question.alpha);
  if (std::isnan(estimate.log_ratio.center)) {  // fewer than two pairs: a ratio perhaps, never an interval
    if (estimate.pairs == 1) estimate.log_ratio.center = log_ratios[0];
    return estimate;
  }
  estimate.rounds_needed = rounds_to_reach(distance_to_threshold(estimate.log_ratio, question.smallest_effect),
                                           estimate.log_ratio, question.alpha);
  return estimate;
}

}  // namespace

Pairs pair_blocks(const SweepBlocks& sweep, std::int32_t case_index) {
  const auto first = blocks_of(sweep, sweep.baseline), second = blocks_of(sweep, case_index);
  Pairs pairs;
  for (const auto& [round, block] : first) {
    const auto other = second.find(round);
    if (other == second.end() || other->second->session != block->session) continue;
    pairs.first.push_back(block->seconds);
    pairs.second.push_back(other->second->seconds);
  }
  return pairs;
}

std::vector<Estimate> estimate_trimmed_pairs(const SweepBlocks& sweep, std::span<const Question> questions) {
  std::vector<Estimate> estimates;
  for (const Question& question : questions) {
    estimates.push_back(with_trimmed_mean(log_ratios_of(pair_blocks(sweep, question.case_index)), question));
  }
  return estimates;
}

std::vector<Estimate> estimate_median_pairs(const SweepBlocks& sweep, std::span<const Question> questions) {
  std::vector<Estimate> estimates;
  for (const Question& question : questions) {
    const std::vector<double> log_ratios = log_ratios_of(pair_blocks(sweep, question.case_index));
    Estimate estimate = with_trimmed_mean(log_ratios, question);
    if (estimate.pairs >= 2) estimate.log_ratio = sign_interval(log_ratios, question.alpha);
    // Fewer cannot settle anything, whatever they show.
    const int least = static_cast<int>(std::ceil(1 - std::log2(question.alpha)));
    estimate.rounds_needed = std::max(estimate.rounds_needed, least);
    estimates.push_back(estimate);
  }
  return estimates;
}

}  // namespace harness::analysis
