#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace harness::analysis {

// What the machine could do at the time of a block, judged by the other blocks: never by the block itself, so that no
// block explains itself. This is the neighbour adjustment of field trials (Papadakis 1937; J. Besag and R. Kempton,
// "Statistical analysis of field experiments using neighbouring plots", Biometrics 42, 1986) along the axis of time.

/// A block in a model of level. Groups are numbered from 0, the reference, without gaps.
struct LevelBlock {
  double log_seconds = 0;  // of the block's median timed step
  double time_s = 0;       // when its timed part began, from any origin
  int group = 0;
  std::int32_t case_index = 0, round = 0, session = 0;
  std::int32_t pool = 0;  // as FinishedBlock::pool; ascends with time
};

/// The weighted mean of the other blocks of the pool, with weights that fall exponentially with distance in time:
///   level_i = sum over j of w_ij value_j / sum over j of w_ij,  w_ij = decay^(|t_i - t_j| / T),
/// T being the usual distance of successive blocks (their median). O(blocks) per decay: a sum that runs forwards and
/// one that runs backwards.
class NeighbourLevel {
 public:
  /// The weight of a block at distance T. One of these is chosen by how well it predicts; 1 is the mean of the pool.
  static constexpr std::array<double, 9> decays = {0.2, 0.35, 0.5, 0.65, 0.8, 0.9, 0.95, 0.98, 1.0};

  /// Blocks by pool, within a pool by time; each pool has two at least (keep_with_neighbour).
  explicit NeighbourLevel(std::span<const LevelBlock> blocks);

  /// Values in the order of the blocks; decay: an index of `decays`.
  std::vector<double> level(std::span<const double> values, std::size_t decay) const;
  /// Seconds after which a neighbour's weight has fallen to 1 / e; infinite for a decay of 1.
  double time_constant_s(std::size_t decay) const;

 private:
  std::vector<double> sums_of_others(std::span<const double> values, std::span<const double> kept) const;

  double usual_gap_s_ = 0;
  std::array<std::vector<double>, decays.size()> kept_;     // of a running sum when it passes from block i - 1 to i
  std::array<std::vector<double>, decays.size()> weights_;  // the denominators
};

/// The mean of the other blocks of the round: what remains when blocks may have affected their neighbours.
class RoundLevel {
 public:
  /// Each round has two blocks at least (keep_with_round).
  explicit RoundLevel(std::span<const LevelBlock> blocks);

  std::vector<double> level(std::span<const double> values) const;
  /// For each block, the median over all blocks of its round.
  std::vector<double> medians(std::span<const double> values) const;

 private:
  std::vector<std::vector<std::size_t>> rounds_;
};

/// The blocks that have another one in their pool, in order of pool and time.
std::vector<LevelBlock> keep_with_neighbour(std::vector<LevelBlock> blocks);
/// The blocks that also have another one in their round of that pool.
std::vector<LevelBlock> keep_with_round(std::vector<LevelBlock> blocks);

}  // namespace harness::analysis
