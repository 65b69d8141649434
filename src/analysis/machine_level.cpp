#include "analysis/level_model.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <tuple>
#include <utility>

#include "base/median.h"

namespace harness::analysis {
namespace {

// A pause within a session must not make all weights vanish: beyond this distance, in usual gaps, blocks are equally
// far.
constexpr double farthest = 64;

double usual_gap(std::span<const LevelBlock> blocks) {
  std::vector<double> gaps;
  for (std::size_t i = 1; i < blocks.size(); ++i) {
    if (blocks[i].session == blocks[i - 1].session) gaps.push_back(blocks[i].steps_unix_s - blocks[i - 1].steps_unix_s);
  }
  const double usual = median(gaps);
  return usual > 0 ? usual : 1;
}

// From the block before, in usual gaps. Blocks without different times count as evenly spaced.
double distance(const LevelBlock& before, const LevelBlock& block, double usual_gap_s, bool timed) {
  return timed ? std::min((block.steps_unix_s - before.steps_unix_s) / usual_gap_s, farthest) : 1;
}

using RoundOfSession = std::pair<std::int32_t, std::int32_t>;
RoundOfSession round_of(const LevelBlock& block) {
  return {block.session, block.round};
}

}  // namespace

NeighbourLevel::NeighbourLevel(std::span<const LevelBlock> blocks) : usual_gap_s_(usual_gap(blocks)) {
  const bool timed =
      std::ranges::adjacent_find(blocks, std::ranges::not_equal_to{}, &LevelBlock::steps_unix_s) != blocks.end();
  const std::vector<double> ones(blocks.size(), 1);
  for (std::size_t decay = 0; decay < decays.size(); ++decay) {
    std::vector<double>& kept = kept_[decay];
    kept.assign(blocks.size(), 0);
    for (std::size_t i = 1; i < blocks.size(); ++i) {
      if (blocks[i].session != blocks[i - 1].session) continue;
      kept[i] = std::pow(decays[decay], distance(blocks[i - 1], blocks[i], usual_gap_s_, timed));
    }
    weights_[decay] = sums_of_others(ones, kept);
  }
}

std::vector<double> NeighbourLevel::sums_of_others(std::span<const double> values, std::span<const double> kept) const {
  std::vector<double> sums(values.size(), 0);
  double running = 0;
  for (std::size_t i = 1; i < values.size(); ++i) {
    running = kept[i] * (running + values[i - 1]);
    sums[i] = running;
  }
  running = 0;
  for (std::size_t i = values.size(); i-- > 1;) {
    running = kept[i] * (running + values[i]);
    sums[i - 1] += running;
  }
  return sums;
}

std::vector<double> NeighbourLevel::level(std::span<const double> values, std::size_t decay) const {
  std::vector<double> level = sums_of_others(values, kept_[decay]);
  for (std::size_t i = 0; i < level.size(); ++i) level[i] /= weights_[decay][i];
  return level;
}

double NeighbourLevel::time_constant_s(std::size_t decay) const {
  const double rate = -std::log(decays[decay]);
  return rate > 0 ? usual_gap_s_ / rate : std::numeric_limits<double>::infinity();
}

RoundLevel::RoundLevel(std::span<const LevelBlock> blocks) {
  std::map<RoundOfSession, std::vector<std::size_t>> members;
  for (std::size_t i = 0; i < blocks.size(); ++i) members[round_of(blocks[i])].push_back(i);
  for (auto& [round, indices] : members) rounds_.push_back(std::move(indices));
}

std::vector<double> RoundLevel::level(std::span<const double> values) const {
  std::vector<double> level(values.size());
  for (const std::vector<std::size_t>& round : rounds_) {
    double sum = 0;
    for (const std::size_t i : round) sum += values[i];
    for (const std::size_t i : round) level[i] = (sum - values[i]) / static_cast<double>(round.size() - 1);
  }
  return level;
}

std::vector<double> RoundLevel::medians(std::span<const double> values) const {
  std::vector<double> medians(values.size());
  for (const std::vector<std::size_t>& round : rounds_) {
    std::vector<double> of_round;
    for (const std::size_t i : round) of_round.push_back(values[i]);
    const double middle = median(of_round);
    for (const std::size_t i : round) medians[i] = middle;
  }
  return medians;
}

std::vector<LevelBlock> keep_with_neighbour(std::vector<LevelBlock> blocks) {
  std::map<std::int32_t, int> count;
  for (const LevelBlock& block : blocks) ++count[block.session];
  std::erase_if(blocks, [&](const LevelBlock& block) { return count[block.session] < 2; });
  std::ranges::stable_sort(blocks, {},
                           [](const LevelBlock& block) { return std::tuple(block.session, block.steps_unix_s); });
  return blocks;
}

std::vector<LevelBlock> keep_with_round(std::vector<LevelBlock> blocks) {
  std::map<RoundOfSession, int> count;
  for (const LevelBlock& block : blocks) ++count[round_of(block)];
  std::erase_if(blocks, [&](const LevelBlock& block) { return count[round_of(block)] < 2; });
  return keep_with_neighbour(std::move(blocks));
}

}  // namespace harness::analysis
