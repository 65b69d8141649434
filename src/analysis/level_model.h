#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <span>
#include <vector>

#include "analysis/blocks.h"
#include "analysis/machine_level.h"
#include "analysis/statistics.h"

namespace harness::analysis {

// The model of a sweep: log block median = group + level(time) + noise. The level is estimated from the other blocks
// (machine_level.h), a group's location is Tukey's bisquare mean of its levelled blocks, and both are estimated in
// turn. docs/method.md has every formula. Sources:
//   J. W. Tukey's bisquare: A. E. Beaton and J. W. Tukey, Technometrics 16 (1974); P. J. Huber and E. M. Ronchetti,
//     "Robust Statistics", chapters 6 and 7, for the variance of such a mean;
//   variances moved towards a common one: G. K. Smyth, "Linear models and empirical Bayes methods", Statistical
//     Applications in Genetics and Molecular Biology 3 (2004), here one-sided and with a fixed weight;
//   degrees of freedom of a difference: F. E. Satterthwaite, Biometrics Bulletin 2 (1946); B. L. Welch, Biometrika 34
//     (1947).
// Its constants are part of the method, whose name is "level"; none is an option.

/// The resolution of the file's step times, in log seconds: what scatters less does not scatter.
inline constexpr double time_resolution = 1e-7;

/// Where the level of a block comes from.
enum class LevelSource : std::uint8_t {
  neighbours,  // the other blocks of the session, near ones most
  round,       // the other blocks of its round
};

/// What is known of a group, in log seconds.
struct LevelGroup {
  int blocks = 0;
  int set_aside = 0;        // blocks so far off that they count nothing
  double location = 0;      // beyond the level
  double scale = 0;         // of one block, from medians; at least that of all blocks
  double own_variance = 0;  // of one block
  double variance = 0;      // moved towards the common one, never below the own
  double degrees = 0;       // of freedom, of `variance`
};

struct LevelFit {
  std::vector<LevelGroup> groups;
  std::vector<double> influence;  // of each block: how far it is off its group, less where it counts less
  std::vector<double> level;      // at each block: log seconds that a block of group 0 would have taken just then
  std::vector<bool> set_aside;    // of each block: so far off that it counts nothing
  double common_variance = 0;     // of one block
  std::size_t decay = 0;          // an index of NeighbourLevel::decays; meaningless for LevelSource::round
  double time_constant_s = 0;     // that it stands for
};

/// The blocks of a sweep, all in group 0 yet.
std::vector<LevelBlock> level_blocks(std::span<const FinishedBlock> blocks);
/// Numbers the groups that are there, by case: the baseline and its copy 0, the others from 1 in their order. Returns
/// the group of each case that has a block.
std::map<std::int32_t, int> number_groups(std::span<LevelBlock> blocks, std::int32_t baseline, std::int32_t copy);

/// Blocks as keep_with_neighbour (for LevelSource::round, keep_with_round) leaves them; every group from 0 to the
/// highest has one at least.
LevelFit fit_level(std::span<const LevelBlock> blocks, LevelSource source = LevelSource::neighbours);

/// A part of a contrast, which is a weighted sum of locations whose weights add up to 0.
struct GroupWeight {
  int group = 0;
  double weight = 1;
};

/// A group against the reference.
inline std::vector<GroupWeight> against_reference(int group) {
  return {{group, 1}, {0, -1}};
}

/// The interval of a contrast at confidence 1 - alpha, `widening` times as wide as the scatter alone makes it. n: the
/// fewest blocks of a group in it, the reference aside.
ConfidenceInterval level_interval(const LevelFit& fit, std::span<const GroupWeight> contrast, double alpha,
                                  double widening = 1);

/// How many rounds bring the half width of that interval below `distance` if locations and scatter stay what they are.
/// At most max_rounds.
int level_rounds_to_reach(double distance, const LevelFit& fit, std::span<const GroupWeight> contrast, double alpha,
                          double widening = 1);

}  // namespace harness::analysis
