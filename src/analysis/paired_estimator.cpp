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

Estimate with_mean(std::span<const double> log_ratios, const Question& question) {
  Estimate estimate;
  estimate.rounds = static_cast<int>(log_ratios.size());
  estimate.log_ratio = yuen_interval(log_ratios, question.alpha, 0);
  if (estimate.rounds < least_pairs) {  // a ratio perhaps, never an interval
    estimate.log_ratio = {.center = estimate.rounds == 1 ? log_ratios[0] : estimate.log_ratio.center,
                          .n = estimate.rounds};
    return estimate;
  }
  estimate.rounds_needed = rounds_to_reach(distance_to_threshold(estimate.log_ratio, question.smallest_effect),
                                           estimate.log_ratio, question.alpha);
  return estimate;
}

// The baseline's blocks as the geometric means of themselves and the control's, round by round; alone where the control
// has none.
std::vector<FinishedBlock> mean_baselines(const SweepBlocks& sweep) {
  std::vector<FinishedBlock> means;
  auto copies = blocks_of(sweep, sweep.control);
  for (const auto& [round, block] : blocks_of(sweep, sweep.baseline)) {
    means.push_back(*block);
    const auto copy = copies.find(round);
    if (copy == copies.end() || copy->second->session != block->session) continue;
    means.back().seconds = std::sqrt(block->seconds * copy->second->seconds);
    copies.erase(copy);
  }
  for (const auto& [round, copy] : copies) means.push_back(*copy);
  return means;
}

// The contrast that a question asks for, in each round in which all of its cases finished in one session.
std::vector<double> log_contrasts(const SweepBlocks& sweep, const Question& question) {
  const std::vector<CaseWeight> contrast = contrast_of(question, sweep.baseline);
  std::map<std::int32_t, std::pair<double, std::size_t>> sums;  // by round: so far, and of how many cases
  std::map<std::int32_t, std::int32_t> sessions;
  for (const CaseWeight& term : contrast) {
    for (const auto& [round, block] : blocks_of(sweep, term.case_index)) {
      if (sessions.try_emplace(round, block->session).first->second != block->session) continue;
      auto& [sum, cases] = sums[round];
      sum += term.weight * std::log(block->seconds);
      ++cases;
    }
  }
  std::vector<double> log_contrasts;
  for (const auto& entry : sums) {
    if (entry.second.second == contrast.size()) log_contrasts.push_back(entry.second.first);
  }
  return log_contrasts;
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

std::vector<double> log_ratios_of(const Pairs& pairs) {
  std::vector<double> log_ratios;
  for (std::size_t i = 0; i < pairs.first.size(); ++i) log_ratios.push_back(std::log(pairs.second[i] / pairs.first[i]));
  return log_ratios;
}

SweepEstimate estimate_mean_pairs(const SweepBlocks& sweep, std::span<const Question> questions) {
  SweepBlocks joint{mean_baselines(sweep), sweep.baseline};
  for (FinishedBlock& block : joint.blocks) block.case_index = sweep.baseline;
  for (const FinishedBlock& block : sweep.blocks) {
    if (block.case_index != sweep.baseline && block.case_index != sweep.control) joint.blocks.push_back(block);
  }
  SweepEstimate out;
  for (const Question& question : questions) {
    const SweepBlocks& blocks = question.case_index == sweep.control ? sweep : joint;
    out.answers.push_back(with_mean(log_contrasts(blocks, question), question));
  }
  return out;
}

}  // namespace harness::analysis
