#include "analysis/level_guards.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <tuple>
#include <vector>

#include "analysis/distributions.h"

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
    if (blocks[i].session != blocks[i - 1].session) continue;
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
    if (blocks[i].session == blocks[i - 1].session) total += std::pow(fit.influence[i] - all.mean(), 2);
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

}  // namespace harness::analysis
