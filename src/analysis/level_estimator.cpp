#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <set>
#include <tuple>
#include <utility>
#include <vector>

#include "analysis/level_model.h"
#include "base/median.h"

namespace harness::analysis {
namespace {

std::vector<BlocksApart> find_blocks_apart(std::span<const LevelBlock> blocks, const LevelFit& fit) {
  constexpr double apart = 3;  // scales: 0.3 % of blocks that scatter normally
  std::vector<BlocksApart> out(fit.groups.size());
  std::vector<std::vector<double>> below(out.size()), above(out.size());
  for (std::size_t i = 0; i < blocks.size(); ++i) {
    const auto group = static_cast<std::size_t>(blocks[i].group);
    const double beyond_reference = blocks[i].log_seconds - fit.level[i];
    const double off = beyond_reference - (fit.groups[group].location - fit.groups[0].location);
    ++out[group].blocks;
    if (std::abs(off) > apart * fit.groups[group].scale) (off < 0 ? below : above)[group].push_back(off);
  }
  for (std::size_t group = 0; group < out.size(); ++group) {
    out[group].below = static_cast<int>(below[group].size());
    out[group].above = static_cast<int>(above[group].size());
    if (!below[group].empty()) out[group].below_off = median(below[group]);
    if (!above[group].empty()) out[group].above_off = median(above[group]);
  }
  return out;
}

// The fit of a sweep and its guards' findings.
class GuardedFit {
 public:
  GuardedFit(const SweepBlocks& sweep, bool control_apart) : sweep_(sweep), control_apart_(control_apart) {
    std::vector<LevelBlock> blocks;
    for (const FinishedBlock& block : sweep_.blocks) blocks.push_back({block, std::log(block.seconds)});
    take(keep_with_neighbour(std::move(blocks)));
    if (!has_reference()) return;
    fit_ = fit_level(blocks_);
    const KindEffect carry = find_carry_over(blocks_, fit_);
    if (carry.found()) fall_back_to_rounds(carry);
    if (!has_reference()) return;
    serial_ = find_serial_correlation(blocks_, fit_);
    apart_ = find_blocks_apart(blocks_, fit_);
  }

  /// Whether the reference has enough blocks for an interval.
  bool has_reference() const {
    return groups_.contains(sweep_.baseline) &&
           std::ranges::count(blocks_, 0, &LevelBlock::group) >= least_level_rounds;
  }

  Estimate answer(const Question& question) const {
    Estimate estimate;
    const auto found = groups_.find(question.case_index);
    if (found == groups_.end() || found->second == 0 || !groups_.contains(sweep_.baseline)) return estimate;
    const int group = found->second;
    estimate.log_ratio = level_interval(fit_, group, question.alpha, serial_.widening());
    const int rounds = estimate.log_ratio.n;
    if (rounds < least_level_rounds) return {.log_ratio = estimate.log_ratio.without_ends()};
    estimate.rounds_needed = level_rounds_to_reach(distance_to_threshold(estimate.log_ratio, question.smallest_effect),
                                                   fit_, group, question.alpha, serial_.widening());
    const Reach reach = reach_to_apart(apart_, group, question.alpha);
    if (!reach.any()) return estimate;
    estimate.two_states = true;
    estimate.log_ratio.low += reach.low;
    estimate.log_ratio.high += reach.high;
    estimate.rounds_needed =
        std::max(estimate.rounds_needed, rounds_to_tell_apart(apart_, group, question.alpha, rounds));
    return estimate;
  }

  LevelFindings findings() const {
    LevelFindings findings;
    findings.reference = sweep_.baseline;
    findings.block_deviation = std::sqrt(fit_.common_variance);
    if (carry_over_ == no_case) findings.time_constant_s = fit_.time_constant_s;
    findings.carry_over = carry_over_;
    findings.serial_correlation = serial_.correlation;
    findings.widening = serial_.widening();
    findings.blocks = static_cast<int>(blocks_.size());
    findings.range = range();
    for (const auto& [case_index, group] : groups_) {
      if (group == 0 && case_index != sweep_.baseline) continue;  // counted with the baseline
      const LevelGroup& of = fit_.groups[static_cast<std::size_t>(group)];
      if (of.set_aside > 0) findings.set_aside.push_back({case_index, of.set_aside, of.blocks});
    }
    return findings;
  }

 private:
  std::optional<LevelFindings::Range> range() const {
    constexpr double least_change = 0.1,
                     least_errors = 6;               // 40 rounds of noise span 3
    constexpr double median_to_mean_error = 1.2533;  // sqrt(pi / 2): a median's standard error over a mean's
    std::map<std::pair<std::int32_t, std::int32_t>, std::vector<std::size_t>> rounds;  // by session and round
    std::vector<double> machine, distances;  // times without group effects; their distances from the level
    for (std::size_t i = 0; i < blocks_.size(); ++i) {
      const double of_group = fit_.groups[static_cast<std::size_t>(blocks_[i].group)].location;
      machine.push_back(blocks_[i].log_seconds - (of_group - fit_.groups[0].location));
      distances.push_back(std::abs(machine[i] - fit_.level[i]));
      rounds[{blocks_[i].session, blocks_[i].round}].push_back(i);
    }
    std::erase_if(rounds, [](const auto& round) { return round.second.size() < 3; });
    if (rounds.size() < 2) return std::nullopt;
    const auto median_of = [&](const auto& round) {
      std::vector<double> values;
      for (const std::size_t i : round.second) values.push_back(machine[i]);
      return median(values);
    };
    const auto [fastest, slowest] = std::ranges::minmax_element(rounds, {}, median_of);
    const double change = median_of(*slowest) - median_of(*fastest);
    const double blocks = static_cast<double>(std::min(fastest->second.size(), slowest->second.size()));
    const double error = median_to_mean_error * mad_to_deviation * median(distances) * std::sqrt(2 / blocks);
    if (!(change > std::log1p(least_change)) || change < least_errors * error) return std::nullopt;
    return LevelFindings::Range{blocks_[fastest->second.front()].index, blocks_[slowest->second.front()].index, change};
  }

  // Numbers the groups by case: the baseline and its copy are 0, the others follow from 1 in their order.
  void take(std::vector<LevelBlock> blocks) {
    blocks_ = std::move(blocks);
    groups_.clear();
    for (const LevelBlock& block : blocks_) groups_[block.case_index] = 0;
    int next = 1;
    for (auto& [case_index, group] : groups_) {
      if (case_index != sweep_.baseline && (control_apart_ || case_index != sweep_.control)) group = next++;
    }
    for (LevelBlock& block : blocks_) block.group = groups_[block.case_index];
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
  std::map<std::int32_t, int> groups_;  // group of each case present
  LevelFit fit_;
  std::int32_t carry_over_ = no_case;
  SerialCorrelation serial_;
  std::vector<BlocksApart> apart_;  // per group
};

// Whether the squares exceed the time resolution.
bool scatters(double squares, double n) {
  return squares > n * time_resolution * time_resolution;
}

}  // namespace

std::vector<LevelBlock> keep_with_neighbour(std::vector<LevelBlock> blocks) {
  std::map<std::int32_t, int> count;
  for (const LevelBlock& block : blocks) ++count[block.session];
  std::erase_if(blocks, [&](const LevelBlock& block) { return count[block.session] < 2; });
  std::ranges::stable_sort(blocks, {},
                           [](const LevelBlock& block) { return std::tuple(block.session, block.steps_unix_s); });
  return blocks;
}

std::vector<LevelBlock> keep_with_round(std::vector<LevelBlock> blocks) {
  const auto round_of = [](const LevelBlock& block) { return std::pair(block.session, block.round); };
  std::map<std::pair<std::int32_t, std::int32_t>, int> count;
  for (const LevelBlock& block : blocks) ++count[round_of(block)];
  std::erase_if(blocks, [&](const LevelBlock& block) { return count[round_of(block)] < 2; });
  return keep_with_neighbour(std::move(blocks));
}

SweepEstimate estimate_level(const SweepBlocks& sweep, std::span<const Question> questions) {
  std::set<std::int32_t> rounds;
  for (const FinishedBlock& block : sweep.blocks) rounds.insert(block.round);
  if (std::ssize(rounds) < least_level_rounds) return estimate_mean_pairs(sweep, questions);
  const GuardedFit together(sweep, false);
  if (!together.has_reference()) return estimate_mean_pairs(sweep, questions);
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
  const GuardedFit& fit = control_moved ? *apart : together;
  SweepEstimate out;
  for (const Question& question : questions) {
    const bool of_control = test_control && question.case_index == sweep.control;
    out.answers.push_back(of_control ? control : fit.answer(question));
  }
  out.level = fit.findings();
  if (control_moved) out.level->baseline_left = control.log_ratio.center;
  return out;
}

KindEffect find_carry_over(std::span<const LevelBlock> blocks, const LevelFit& fit) {
  std::map<int, std::vector<double>> of_kind;  // influence, by the group that ran before
  std::vector<double> all;
  for (std::size_t i = 1; i < blocks.size(); ++i) {
    if (blocks[i].session != blocks[i - 1].session) continue;
    of_kind[blocks[i - 1].group].push_back(fit.influence[i]);
    all.push_back(fit.influence[i]);
  }
  const double mean = average(all), n = static_cast<double>(all.size());
  double between = 0, total = 0;
  KindEffect out;
  double slowest = -std::numeric_limits<double>::infinity();
  for (const auto& [kind, values] : of_kind) {
    const double of_these = average(values);
    between += static_cast<double>(values.size()) * std::pow(of_these - mean, 2);
    if (of_these <= slowest) continue;
    slowest = of_these;
    out.slowest = kind;
  }
  for (const double value : all) total += std::pow(value - mean, 2);
  if (of_kind.size() < 2 || !scatters(total, n)) return out;
  const double numerator = static_cast<double>(of_kind.size()) - 1;
  // Minus the degrees of freedom of the groups' locations.
  const double denominator = std::max(n - static_cast<double>(fit.groups.size()) - numerator, 1.0);
  const double within = std::max(total - between, 0.0);
  out.p_value = within > 0 ? f_upper_tail(between / numerator / (within / denominator), numerator, denominator) : 0;
  return out;
}

SerialCorrelation find_serial_correlation(std::span<const LevelBlock> blocks, const LevelFit& fit) {
  std::map<std::tuple<std::int32_t, std::int32_t, std::int32_t>, double> by_place;  // session, case, round
  std::map<std::int32_t, int> by_case;
  double squares = 0;
  for (std::size_t i = 0; i < blocks.size(); ++i) {
    by_place[{blocks[i].session, blocks[i].case_index, blocks[i].round}] = fit.influence[i];
    ++by_case[blocks[i].case_index];
    squares += fit.influence[i] * fit.influence[i];
  }
  SerialCorrelation out;
  double products = 0;
  for (const auto& [place, influence] : by_place) {
    const auto& [session, case_index, round] = place;
    const auto next = by_place.find({session, case_index, round + 1});
    if (next == by_place.end()) continue;
    products += influence * next->second;
    ++out.pairs;
  }
  const auto n = static_cast<double>(blocks.size());
  if (out.pairs == 0 || !scatters(squares, n)) return out;
  // Subtracting the mean of m values leaves a correlation of -1 / m between any two.
  out.correlation = products / out.pairs / (squares / n) + static_cast<double>(by_case.size()) / n;
  return out;
}

double SerialCorrelation::widening() const {
  constexpr double most = 0.9;
  if (!found()) return 1;
  const double r = std::min(correlation, most);
  return std::sqrt((1 + r) / (1 - r));
}

Reach reach_to_apart(std::span<const BlocksApart> groups, int compared, double alpha) {
  int blocks = 0, apart = 0;
  for (const BlocksApart& group : groups) {
    blocks += group.blocks;
    apart += group.below + group.above;
  }
  // One more of each kind than was seen: seeing none does not prove that there are none.
  const double share = std::min((apart + 1.0) / (blocks + 2.0), 0.5);
  Reach reach;
  const auto add = [&](const BlocksApart& group, int count, double shift) {
    if (count == 0 || binomial_upper_tail(group.blocks, group.blocks - count, share) <= alpha / 2) return;
    (shift < 0 ? reach.low : reach.high) += shift;
  };
  const BlocksApart &group = groups[static_cast<std::size_t>(compared)], &reference = groups[0];
  add(group, group.below, group.below_off);
  add(group, group.above, group.above_off);
  add(reference, reference.below, -reference.below_off);
  add(reference, reference.above, -reference.above_off);
  return reach;
}

int rounds_to_tell_apart(std::span<const BlocksApart> groups, int group, double alpha, int rounds) {
  for (int wanted = rounds + 1; wanted < max_rounds; ++wanted) {
    const auto then = [&](int count) {
      return static_cast<int>(std::lround(static_cast<double>(count) * wanted / rounds));
    };
    std::vector<BlocksApart> grown(groups.begin(), groups.end());
    for (BlocksApart& each : grown) {
      each.blocks = then(each.blocks);
      each.below = then(each.below);
      each.above = then(each.above);
    }
    if (!reach_to_apart(grown, group, alpha).any()) return wanted;
  }
  return max_rounds;
}

}  // namespace harness::analysis
