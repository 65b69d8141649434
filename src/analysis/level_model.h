#pragma once

#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "analysis/estimator.h"
#include "store/result.h"

namespace harness::analysis {

// How fast the machine was at the time of a block, judged by the other blocks: never by the block itself, so that no
// block explains itself. This is the neighbour adjustment of field trials (Papadakis 1937; J. Besag and R. Kempton,
// "Statistical analysis of field experiments using neighbouring plots", Biometrics 42, 1986) along the axis of time.

/// A block in a model of level. Groups are numbered from 0, the reference, without gaps.
struct LevelBlock : FinishedBlock {
  double log_seconds = 0;  // of the block's median timed step
  int group = 0;
};

/// The weighted mean of the other blocks of the session, with weights that fall exponentially with distance in time:
///   level_i = sum over j of w_ij value_j / sum over j of w_ij,  w_ij = decay^(|t_i - t_j| / T),
/// T being the usual distance of successive blocks (their median).
class NeighbourLevel {
 public:
  /// The weight of a block at distance T. One of these is chosen by how well it predicts; 1 is the mean of the
  /// session.
  static constexpr std::array<double, 9> decays = {0.2, 0.35, 0.5, 0.65, 0.8, 0.9, 0.95, 0.98, 1.0};

  /// Blocks by session, within a session by time; each session has two at least (keep_with_neighbour).
  explicit NeighbourLevel(std::span<const LevelBlock> blocks);

  /// Values in the order of the blocks; decay: an index of `decays`.
  std::vector<double> level(std::span<const double> values, std::size_t decay) const;
  /// Seconds after which a neighbour's weight has fallen to 1 / e; infinite for a decay of 1.
  double time_constant_s(std::size_t decay) const;

 private:
  double usual_gap_s_ = 0;
  std::vector<double> distances_;  // from the block before, in usual gaps; negative: it is of another session
};

/// The blocks that have another one in their session, in order of session and time.
std::vector<LevelBlock> keep_with_neighbour(std::vector<LevelBlock> blocks);
/// The blocks that also have another one in their round of that session.
std::vector<LevelBlock> keep_with_round(std::vector<LevelBlock> blocks);

// The model of a sweep: log block median = group + level(time) + noise. The level is estimated from the other blocks
// (NeighbourLevel), a group's location is Tukey's bisquare mean of its levelled blocks, and both are estimated in
// turn: docs/method.md, and every step in tests/analysis/data/make_level_sweeps.py. Sources:
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

/// The estimates for one group, in log seconds.
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
  double common_variance = 0;     // of one block
  double time_constant_s = 0;     // of the decay that was chosen; meaningless for LevelSource::round
};

/// The blocks of a sweep, all in group 0 yet.
std::vector<LevelBlock> level_blocks(std::span<const FinishedBlock> blocks);
/// Numbers the groups that are there, by case: the baseline and its copy 0, the others from 1 in their order. Returns
/// the group of each case that has a block.
std::map<std::int32_t, int> number_groups(std::span<LevelBlock> blocks, std::int32_t baseline, std::int32_t copy);

/// Blocks as keep_with_neighbour (for LevelSource::round, keep_with_round) leaves them; every group from 0 to the
/// highest has one at least.
LevelFit fit_level(std::span<const LevelBlock> blocks, LevelSource source = LevelSource::neighbours);

/// The interval of a group's location beyond the reference's at confidence 1 - alpha, `widening` times as wide as the
/// scatter alone makes it. n: the blocks of the group.
ConfidenceInterval level_interval(const LevelFit& fit, int group, double alpha, double widening = 1);

/// How many rounds bring the half width of that interval below `distance` if locations and scatter stay what they are.
/// At most max_rounds.
int level_rounds_to_reach(double distance, const LevelFit& fit, int group, double alpha, double widening = 1);

// The guards test the assumptions that the level model makes beyond pairs within rounds. Their thresholds are part of
// the method.

/// Whether blocks are slower or faster by something that they have one kind of: a one-way analysis of variance with
/// R. A. Fisher's F.
struct KindEffect {
  double p_value = 1;
  int slowest = 0;  // the kind whose blocks are slowest
  bool found() const { return p_value < 0.05; }
};

/// The blocks' influence by the case that ran before them in the session (B. Jones and M. G. Kenward, "Design and
/// Analysis of Cross-Over Trials"); kinds are groups.
KindEffect find_carry_over(std::span<const LevelBlock> blocks, const LevelFit& fit);

/// Whether a case's blocks in successive rounds are off in the same direction, so that the case drifts in a way of its
/// own. The correlation is that of influence, pooled over cases, the copies of the baseline apart, and corrected for
/// the locations that were taken out of it.
struct SerialCorrelation {
  double correlation = 0;
  int pairs = 0;  // of blocks in successive rounds of a session
  bool found() const { return pairs > 0 && correlation > 2 / std::sqrt(pairs); }
  /// By how much intervals are to be widened: 1 where nothing was found, else sqrt((1 + r) / (1 - r)), as for the mean
  /// of a first-order autoregression (G. E. P. Box and G. M. Jenkins, "Time Series Analysis").
  double widening() const;
};
SerialCorrelation find_serial_correlation(std::span<const LevelBlock> blocks, const LevelFit& fit);

/// The blocks of a group that lie more than three scales off the others. Where so many of the sweep lie apart that
/// chance may have disturbed most blocks of a group, those that lie apart may be the undisturbed ones.
struct BlocksApart {
  int blocks = 0;                       // of the group
  int below = 0, above = 0;             // how many lie apart
  double below_off = 0, above_off = 0;  // their medians from the location, in log seconds; 0 if there are none
};

/// How far an interval must reach beyond its ends for the locations of the blocks apart: low <= 0 <= high, in log
/// seconds. A group's count if chance, at the sweep's share of blocks apart, disturbs all its others with a probability
/// of more than alpha / 2.
struct Reach {
  double low = 0, high = 0;
  bool any() const { return low < 0 || high > 0; }
};
Reach reach_to_apart(std::span<const BlocksApart> groups, int group, double alpha);
/// How many rounds would end that, if the shares of blocks apart stay what they are after `rounds`. At most max_rounds.
int rounds_to_tell_apart(std::span<const BlocksApart> groups, int group, double alpha, int rounds);

}  // namespace harness::analysis
