#include "analysis/estimator.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <utility>

#include "analysis/level_model.h"
#include "analysis/verdict.h"

namespace harness::analysis {
namespace {

// The fit of a sweep, and what the guards made of it.
class GuardedFit {
 public:
  GuardedFit(const SweepBlocks& sweep, bool control_apart) : sweep_(sweep), control_apart_(control_apart) {
    take(keep_with_neighbour(level_blocks(sweep_.blocks)));
    if (!has_reference()) return;
    fit_ = fit_level(blocks_);
    const KindEffect carry = find_carry_over(blocks_, fit_);
    if (carry.found()) fall_back_to_rounds(carry);
    if (!has_reference()) return;
    serial_ = find_serial_correlation(blocks_, fit_);
    apart_ = find_blocks_apart(blocks_, fit_);
  }

  /// Whether it has enough of the reference for an interval.
  bool has_reference() const { return groups_.contains(sweep_.baseline) && blocks_of(0) >= least_level_rounds; }

  Estimate answer(const Question& question) const {
    Estimate estimate;
    const std::vector<GroupWeight> contrast = contrast_of(question.case_index);
    if (contrast.empty()) return estimate;
    estimate.log_ratio = level_interval(fit_, contrast, question.alpha, serial_.widening());
    estimate.rounds = estimate.log_ratio.n;
    if (estimate.rounds < least_level_rounds) {
      estimate.log_ratio = {.center = estimate.log_ratio.center, .n = estimate.rounds};
      return estimate;
    }
    estimate.rounds_needed = level_rounds_to_reach(distance_to_threshold(estimate.log_ratio, question.smallest_effect),
                                                   fit_, contrast, question.alpha, serial_.widening());
    const Reach reach = reach_to_apart(apart_, contrast, question.alpha);
    if (!reach.any()) return estimate;
    estimate.two_states = true;
    estimate.log_ratio.low += reach.low;
    estimate.log_ratio.high += reach.high;
    estimate.rounds_needed =
        std::max(estimate.rounds_needed, rounds_to_tell_apart(apart_, contrast, question.alpha, estimate.rounds));
    return estimate;
  }

  LevelFindings findings() const {
    LevelFindings findings;
    findings.reference = sweep_.baseline;
    findings.block_deviation = std::sqrt(fit_.common_variance);
    findings.time_constant_s = fit_.time_constant_s;
    findings.carry_over = carry_over_;
    findings.serial_correlation = serial_.correlation;
    findings.widening = serial_.widening();
    findings.blocks = static_cast<int>(blocks_.size());
    for (const auto& [case_index, group] : groups_) {
      if (group == 0 && case_index != sweep_.baseline) continue;  // counted with the baseline
      const LevelGroup& of = fit_.groups[static_cast<std::size_t>(group)];
      if (of.set_aside > 0) findings.set_aside.push_back({case_index, of.set_aside, of.blocks});
    }
    return findings;
  }

 private:
  // The case against the baseline; empty if one has no block, or if it is the reference itself.
  std::vector<GroupWeight> contrast_of(std::int32_t case_index) const {
    const auto found = groups_.find(case_index), baseline = groups_.find(sweep_.baseline);
    if (found == groups_.end() || baseline == groups_.end() || found->second == 0) return {};
    return {{found->second, 1}, {baseline->second, -1}};
  }

  int blocks_of(int group) const { return static_cast<int>(std::ranges::count(blocks_, group, &LevelBlock::group)); }

  void take(std::vector<LevelBlock> blocks) {
    blocks_ = std::move(blocks);
    groups_ = number_groups(blocks_, sweep_.baseline, control_apart_ ? no_case : sweep_.control);
  }

  void fall_back_to_rounds(const KindEffect& carry) {
    carry_over_ = sweep_.baseline;
    for (const auto& [case_index, group] : groups_) {
      if (group == carry.slowest && group > 0) carry_over_ = case_index;
    }
    take(keep_with_round(std::move(blocks_)));
    if (has_reference()) fit_ = fit_level(blocks_, LevelSource::round);
  }

  const SweepBlocks& sweep_;
  bool control_apart_;
  std::vector<LevelBlock> blocks_;
  std::map<std::int32_t, int> groups_;  // of each case that is there
  LevelFit fit_;
  std::int32_t carry_over_ = no_case;
  SerialCorrelation serial_;
  std::vector<BlocksApart> apart_;  // of each group
};

int rounds_of(const SweepBlocks& sweep) {
  std::set<std::int32_t> rounds;
  for (const FinishedBlock& block : sweep.blocks) rounds.insert(block.round);
  return static_cast<int>(rounds.size());
}

}  // namespace

SweepEstimate estimate_level(const SweepBlocks& sweep, std::span<const Question> questions) {
  if (rounds_of(sweep) < least_level_rounds) return estimate_mean_pairs(sweep, questions);
  const GuardedFit together(sweep, false);
  if (!together.has_reference()) return estimate_mean_pairs(sweep, questions);
  const GuardedFit* fit = &together;
  const auto asked = std::ranges::find(questions, sweep.control, &Question::case_index);
  const bool test_control = sweep.control != no_case && asked != questions.end();
  std::optional<GuardedFit> apart;
  Estimate control;
  bool control_moved = false;
  if (test_control) {
    apart.emplace(sweep, true);
    if (apart->has_reference()) control = apart->answer(*asked);
    control_moved = moved(verdict_of(control.log_ratio, asked->smallest_effect));
  }
  if (control_moved) fit = &*apart;
  SweepEstimate out;
  for (const Question& question : questions) {
    const bool of_control = test_control && question.case_index == sweep.control;
    out.answers.push_back(of_control ? control : fit->answer(question));
  }
  out.level = fit->findings();
  if (control_moved) out.level->baseline_left = control.log_ratio.center;
  return out;
}

}  // namespace harness::analysis
