#include "analysis/level_guards.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <tuple>
#include <vector>

#include "analysis/distributions.h"
#include "analysis/power.h"
#include "analysis/statistics.h"

namespace harness::analysis {
namespace {

// Whether there is anything to explain.
bool scatters(double squares, double n) {
  return squares > n * time_resolution * time_resolution;
}

}  // namespace

CarryOver find_carry_over(std::span<const LevelBlock> blocks, const LevelFit& fit) {
  struct Followers {
    int blocks = 0;
    double sum = 0;
    double mean() const { return sum / blocks; }
  };
  std::vector<Followers> after(fit.groups.size());
  Followers all;
  for (std::size_t i = 1; i < blocks.size(); ++i) {
    if (blocks[i].pool != blocks[i - 1].pool) continue;
    for (Followers* followers : {&after[static_cast<std::size_t>(blocks[i - 1].group)], &all}) {
      ++followers->blocks;
      followers->sum += fit.influence[i];
    }
  }
  double between = 0, total = 0;
  int kinds = 0;
  CarryOver out;
  double slowest = -std::numeric_limits<double>::infinity();
  for (std::size_t group = 0; group < after.size(); ++group) {
    if (after[group].blocks == 0) continue;
    ++kinds;
    between += after[group].blocks * std::pow(after[group].mean() - all.mean(), 2);
    if (after[group].mean() <= slowest) continue;
    slowest = after[group].mean();
    out.slowest_after = static_cast<int>(group);
  }
  for (std::size_t i = 1; i < blocks.size(); ++i) {
    if (blocks[i].pool == blocks[i - 1].pool) total += std::pow(fit.influence[i] - all.mean(), 2);
  }
  if (kinds < 2 || !scatters(total, all.blocks)) return out;
  const double numerator = kinds - 1;
  const double denominator = std::max(all.blocks - static_cast<double>(fit.groups.size()) - numerator, 1.0);
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
  // Taking out a mean of m values leaves a correlation of -1 / m between any two.
  out.correlation = products / out.pairs / (squares / n) + static_cast<double>(by_case.size()) / n;
  return out;
}

bool SerialCorrelation::found() const {
  return pairs > 0 && correlation > 2 / std::sqrt(pairs);
}

double SerialCorrelation::widening() const {
  constexpr double most = 0.9;
  if (!found()) return 1;
  const double r = std::min(correlation, most);
  return std::sqrt((1 + r) / (1 - r));
}

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

Reach reach_to_apart(std::span<const BlocksApart> groups, std::span<const GroupWeight> contrast, double alpha) {
  int blocks = 0, apart = 0;
  for (const BlocksApart& group : groups) {
    blocks += group.blocks;
    apart += group.below + group.above;
  }
  // One more of each kind than was seen: that none was seen does not mean that there is none.
  const double share = std::min((apart + 1.0) / (blocks + 2.0), 0.5);
  Reach reach;
  for (const GroupWeight& term : contrast) {
    const BlocksApart& group = groups[static_cast<std::size_t>(term.group)];
    const auto add = [&](int count, double off) {
      if (count == 0 || binomial_upper_tail(group.blocks, group.blocks - count, share) <= alpha / 2) return;
      const double shift = term.weight * off;
      (shift < 0 ? reach.low : reach.high) += shift;
    };
    add(group.below, group.below_off);
    add(group.above, group.above_off);
  }
  return reach;
}

int rounds_to_tell_apart(std::span<const BlocksApart> groups, std::span<const GroupWeight> contrast, double alpha,
                         int rounds) {
  for (int wanted = rounds + 1; wanted < max_rounds; ++wanted) {
    const auto then = [&](int count) {
      return static_cast<int>(std::lround(static_cast<double>(count) * wanted / rounds));
    };
    std::vector<BlocksApart> grown(groups.begin(), groups.end());
    for (BlocksApart& group : grown) {
      group.blocks = then(group.blocks);
      group.below = then(group.below);
      group.above = then(group.above);
    }
    if (!reach_to_apart(grown, contrast, alpha).any()) return wanted;
  }
  return max_rounds;
}

}  // namespace harness::analysis
