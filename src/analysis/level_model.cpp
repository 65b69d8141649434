#include "analysis/level_model.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <utility>

#include "base/median.h"

namespace harness::analysis {
namespace {

constexpr int passes = 8, choosing_passes = 5;  // alternations of level and locations; the first ones choose the decay
constexpr double clip = 2.5;                    // largest pull of a block on its neighbours' level, in scales
constexpr double bisquare_reach = 6;            // in scales
constexpr int bisquare_steps = 10;
constexpr double least_slope = 0.5;

double bisquare_weight(double u) {
  return std::abs(u) < 1 ? (1 - u * u) * (1 - u * u) : 0;
}

double bisquare_mean(std::span<const double> values, double start, double scale) {
  double mean = start;
  for (int step = 0; step < bisquare_steps; ++step) {
    double weighted = 0, weights = 0;
    for (const double value : values) {
      const double weight = bisquare_weight((value - mean) / (bisquare_reach * scale));
      weighted += weight * value;
      weights += weight;
    }
    if (!(weights > 0)) break;
    mean = weighted / weights;
  }
  return mean;
}

std::vector<double> picked(std::span<const double> values, const std::vector<std::size_t>& members) {
  std::vector<double> own;
  for (const std::size_t i : members) own.push_back(values[i]);
  return own;
}

// Estimates level and locations alternately, each given the other.
class Alternation {
 public:
  Alternation(std::span<const LevelBlock> blocks, LevelSource source) : source_(source), neighbours_(blocks) {
    for (std::size_t i = 0; i < blocks.size(); ++i) {
      const auto group = static_cast<std::size_t>(blocks[i].group);
      if (group >= members_.size()) members_.resize(group + 1);
      members_[group].push_back(i);
      rounds_[{blocks[i].session, blocks[i].round}].push_back(i);
      times_.push_back(blocks[i].log_seconds);
    }
    const auto n = static_cast<double>(blocks.size()), groups = static_cast<double>(members_.size());
    scale_factor_ = mad_to_deviation * std::sqrt(n / std::max(n - groups, 1.0));
    fit_.groups.resize(members_.size());
    start();
    for (int pass = 0; pass < passes; ++pass) {
      update_level(pass < choosing_passes);
      update_locations();
    }
  }

  LevelFit result() && {
    fit_.time_constant_s = neighbours_.time_constant_s(decay_);
    fit_.influence.resize(times_.size());
    for (std::size_t group = 0; group < members_.size(); ++group) find_variance(group);
    for (double& level : fit_.level) level += fit_.groups[0].location;
    moderate();
    return std::move(fit_);
  }

 private:
  // Returns for each block the mean of the other blocks of its round, for use when blocks affect their neighbours. Each
  // round must have at least two blocks (keep_with_round).
  std::vector<double> means_of_others(std::span<const double> values) const {
    std::vector<double> means(values.size());
    for (const auto& [round, members] : rounds_) {
      double sum = 0;
      for (const std::size_t i : members) sum += values[i];
      for (const std::size_t i : members) means[i] = (sum - values[i]) / static_cast<double>(members.size() - 1);
    }
    return means;
  }

  // Returns for each block the median of its round, the block included.
  std::vector<double> medians_of_rounds(std::span<const double> values) const {
    std::vector<double> medians(values.size());
    for (const auto& [round, members] : rounds_) {
      const double middle = median(picked(values, members));
      for (const std::size_t i : members) medians[i] = middle;
    }
    return medians;
  }

  // Returns the times without the groups' offsets from the reference.
  std::vector<double> without_groups() const {
    std::vector<double> out = times_;
    for (std::size_t group = 0; group < members_.size(); ++group) {
      for (const std::size_t i : members_[group]) out[i] -= fit_.groups[group].location - fit_.groups[0].location;
    }
    return out;
  }

  std::vector<double> beyond_level() const {
    std::vector<double> out = times_;
    for (std::size_t i = 0; i < out.size(); ++i) out[i] -= fit_.level[i];
    return out;
  }

  // Initialises the locations relative to the median of the round, and the level from them.
  void start() {
    fit_.level = medians_of_rounds(times_);
    const std::vector<double> beyond = beyond_level();
    for (std::size_t group = 0; group < members_.size(); ++group)
      fit_.groups[group].location = median(picked(beyond, members_[group]));
    const std::vector<double> machine = without_groups();
    fit_.level = medians_of_rounds(machine);
    std::vector<double> distances;
    for (std::size_t i = 0; i < machine.size(); ++i) distances.push_back(std::abs(machine[i] - fit_.level[i]));
    scale_ = std::max(scale_factor_ * median(distances), time_resolution);
  }

  void update_level(bool choose) {
    const std::vector<double> machine = without_groups();
    std::vector<double> clipped = machine;
    for (std::size_t i = 0; i < clipped.size(); ++i) {
      clipped[i] = fit_.level[i] + std::clamp(machine[i] - fit_.level[i], -clip * scale_, clip * scale_);
    }
    if (source_ == LevelSource::round) {
      fit_.level = means_of_others(clipped);
      return;
    }
    if (choose) decay_ = best_decay(machine, clipped);
    fit_.level = neighbours_.level(clipped, decay_);
  }

  // Returns the decay that predicts each block best from the others.
  std::size_t best_decay(std::span<const double> machine, std::span<const double> clipped) const {
    std::size_t best = 0;
    double least = std::numeric_limits<double>::infinity();
    for (std::size_t decay = 0; decay < NeighbourLevel::decays.size(); ++decay) {
      const std::vector<double> level = neighbours_.level(clipped, decay);
      double missed = 0;
      for (std::size_t i = 0; i < level.size(); ++i) missed += std::abs(machine[i] - level[i]);
      if (missed >= least) continue;
      least = missed;
      best = decay;
    }
    return best;
  }

  void update_locations() {
    const std::vector<double> beyond = beyond_level();
    std::vector<double> distances(beyond.size());
    for (std::size_t group = 0; group < members_.size(); ++group) {
      LevelGroup& of = fit_.groups[group];
      of.location = median(picked(beyond, members_[group]));
      for (const std::size_t i : members_[group]) distances[i] = std::abs(beyond[i] - of.location);
      of.scale = mad_to_deviation * median(picked(distances, members_[group]));
    }
    scale_ = std::max(scale_factor_ * median(distances), time_resolution);
    for (std::size_t group = 0; group < members_.size(); ++group) {
      LevelGroup& of = fit_.groups[group];
      of.scale = std::max(scale_, of.scale);
      of.location = bisquare_mean(picked(beyond, members_[group]), of.location, of.scale);
    }
  }

  // Also finds the influence of the group's blocks.
  void find_variance(std::size_t group) {
    LevelGroup& of = fit_.groups[group];
    double squares = 0, slope = 0;
    for (const std::size_t i : members_[group]) {
      const double off = times_[i] - fit_.level[i] - of.location;
      const double u = off / (bisquare_reach * of.scale);
      fit_.influence[i] = off * bisquare_weight(u);
      squares += fit_.influence[i] * fit_.influence[i];
      ++of.blocks;
      if (std::abs(u) < 1) {
        slope += (1 - u * u) * (1 - 5 * u * u);
      } else {
        ++of.set_aside;
      }
    }
    slope = std::max(slope / of.blocks, least_slope);
    of.own_variance = squares / (slope * slope * std::max(of.blocks - 1, 1));
  }

  // Shrinks variances half-way to the common one, which weighs as much as a case's own, but only upwards.
  void moderate() {
    double squares = 0, all = 0, most = 0;
    for (std::size_t group = 0; group < fit_.groups.size(); ++group) {
      const double degrees = fit_.groups[group].blocks - 1;
      squares += degrees * fit_.groups[group].own_variance;
      all += degrees;
      if (group > 0) most = std::max(most, degrees);
    }
    if (!(all > 0)) return;
    fit_.common_variance = squares / all;
    for (LevelGroup& group : fit_.groups) {
      const double own = group.blocks - 1, common = std::min(most, all - own);
      group.degrees = common + own;
      const double moved = (common * fit_.common_variance + own * group.own_variance) / std::max(group.degrees, 1.0);
      group.variance = std::max(group.own_variance, moved);
    }
  }

  LevelFit fit_;  // what is known so far; its level is beyond group 0 until the end
  LevelSource source_;
  NeighbourLevel neighbours_;
  std::map<std::pair<std::int32_t, std::int32_t>, std::vector<std::size_t>> rounds_;  // blocks, by session and round
  std::vector<std::vector<std::size_t>> members_;                                     // per group
  std::vector<double> times_;                                                         // log seconds
  double scale_ = 0, scale_factor_ = 0;
  std::size_t decay_ = 0;
};

// The standard error and degrees of freedom of a group's location minus the reference's, if each had `share` times its
// blocks.
struct ContrastError {
  double standard_error = 0, degrees = 0;
};

const LevelGroup& group_of(const LevelFit& fit, int group) {
  return fit.groups[static_cast<std::size_t>(group)];
}

ContrastError error_of(const LevelFit& fit, int compared, double share = 1) {
  double variance = 0, by_degrees = 0;
  for (const LevelGroup& group : {group_of(fit, compared), group_of(fit, 0)}) {
    if (!(group.degrees > 0)) return {std::numeric_limits<double>::infinity(), 1};  // one block has no scatter
    const double part = group.variance / (group.blocks * share);
    variance += part;
    by_degrees += part * part / group.degrees;
  }
  if (!(variance > 0)) return {};
  return {std::sqrt(variance), variance * variance / by_degrees * share};
}

double half_width(const ContrastError& error, double alpha, double widening) {
  if (!(error.standard_error > 0)) return 0;
  return student_t_quantile(1 - alpha / 2, std::max(error.degrees, 1.0)) * error.standard_error * widening;
}

// Caps distances, in usual gaps, so that a pause within a session does not make all weights vanish.
constexpr double farthest = 64;

double usual_gap(std::span<const LevelBlock> blocks) {
  std::vector<double> gaps;
  for (std::size_t i = 1; i < blocks.size(); ++i) {
    if (blocks[i].session == blocks[i - 1].session) gaps.push_back(blocks[i].steps_unix_s - blocks[i - 1].steps_unix_s);
  }
  const double usual = median(gaps);
  return usual > 0 ? usual : 1;
}

}  // namespace

LevelFit fit_level(std::span<const LevelBlock> blocks, LevelSource source) {
  return Alternation(blocks, source).result();
}

ConfidenceInterval level_interval(const LevelFit& fit, int group, double alpha, double widening) {
  const ContrastError error = error_of(fit, group);
  const double center = group_of(fit, group).location - group_of(fit, 0).location;
  const double half = half_width(error, alpha, widening);
  return {center, center - half, center + half, group_of(fit, group).blocks, error.standard_error * widening};
}

int level_rounds_to_reach(double distance, const LevelFit& fit, int group, double alpha, double widening) {
  const int now = group_of(fit, group).blocks;
  return fewest_rounds(now, [&](int rounds) {
    const double share = static_cast<double>(rounds) / now;
    return half_width(error_of(fit, group, share), alpha, widening) < distance;
  });
}

NeighbourLevel::NeighbourLevel(std::span<const LevelBlock> blocks)
    : usual_gap_s_(usual_gap(blocks)), distances_(blocks.size(), -1) {
  const bool timed =  // otherwise blocks count as evenly spaced
      std::ranges::adjacent_find(blocks, std::ranges::not_equal_to{}, &LevelBlock::steps_unix_s) != blocks.end();
  for (std::size_t i = 1; i < blocks.size(); ++i) {
    if (blocks[i].session != blocks[i - 1].session) continue;
    const double gaps = (blocks[i].steps_unix_s - blocks[i - 1].steps_unix_s) / usual_gap_s_;
    distances_[i] = timed ? std::min(gaps, farthest) : 1;
  }
}

// Accumulates running sums of values and of their weights from either end.
std::vector<double> NeighbourLevel::level(std::span<const double> values, std::size_t decay) const {
  const std::size_t n = values.size();
  std::vector<double> level(n, 0), weights(n, 0), kept(n, 0);
  double sum = 0, weight = 0;
  for (std::size_t i = 1; i < n; ++i) {
    if (distances_[i] >= 0) kept[i] = std::pow(decays[decay], distances_[i]);
    level[i] = sum = kept[i] * (sum + values[i - 1]);
    weights[i] = weight = kept[i] * (weight + 1);
  }
  sum = weight = 0;
  for (std::size_t i = n; i-- > 1;) {
    sum = kept[i] * (sum + values[i]);
    weight = kept[i] * (weight + 1);
    level[i - 1] += sum;
    weights[i - 1] += weight;
  }
  for (std::size_t i = 0; i < n; ++i) level[i] /= weights[i];
  return level;
}

double NeighbourLevel::time_constant_s(std::size_t decay) const {
  const double rate = -std::log(decays[decay]);
  return rate > 0 ? usual_gap_s_ / rate : std::numeric_limits<double>::infinity();
}

}  // namespace harness::analysis
