#pragma once

#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "analysis/estimator.h"
#include "store/result.h"

namespace harness::analysis {

// The speed of the machine at the time of a block, estimated from the other blocks alone, so that no block explains
// itself. This is the neighbour adjustment of field trials (Papadakis 1937; J. Besag and R. Kempton, "Statistical
// analysis of field experiments using neighbouring plots", Biometrics 42, 1986) along the time axis.

/// A block in the level model. Groups are numbered from 0, the reference, without gaps.
struct LevelBlock : FinishedBlock {
  double log_seconds = 0;  // log of the block's median timed step
  int group = 0;
};

/// The weighted mean of the other blocks of the session, with weights that fall exponentially with distance in time:
///   level_i = sum over j of w_ij value_j / sum over j of w_ij,  w_ij = decay^(|t_i - t_j| / T),
/// where T is the median time between successive blocks.
class NeighbourLevel {
 public:
  /// The weight of a block at distance T. The one that predicts best is chosen; 1 is the mean of the session.
  static constexpr std::array<double, 9> decays = {0.2, 0.35, 0.5, 0.65, 0.8, 0.9, 0.95, 0.98, 1.0};

  /// Takes blocks ordered by session, then by time, with at least two per session (keep_with_neighbour).
  explicit NeighbourLevel(std::span<const LevelBlock> blocks);

  /// `values`: in the order of the blocks. `decay`: an index into `decays`.
  std::vector<double> level(std::span<const double> values, std::size_t decay) const;
  /// Returns the seconds after which a neighbour's weight has fallen to 1 / e; infinite for a decay of 1.
  double time_constant_s(std::size_t decay) const;

 private:
  double usual_gap_s_ = 0;
  std::vector<double> distances_;  // from the previous block, in usual gaps; negative: it is in another session
};

/// Keeps the blocks that have another one in their session, in order of session and time.
std::vector<LevelBlock> keep_with_neighbour(std::vector<LevelBlock> blocks);
/// Keeps the blocks that also have another one in their round of that session.
std::vector<LevelBlock> keep_with_round(std::vector<LevelBlock> blocks);

// The model of a sweep: log block median = group + level(time) + noise. The level is estimated from the other blocks
// (NeighbourLevel), a group's location is Tukey's bisquare mean of its levelled blocks, and both are estimated in
// turn: docs/method.md, and every step in tests/analysis/data/make_level_sweeps.py. Sources:
//   Tukey's bisquare: A. E. Beaton and J. W. Tukey, Technometrics 16 (1974); P. J. Huber and E. M. Ronchetti,
//     "Robust Statistics", chapters 6 and 7, for the variance of such a mean;
//   shrinkage of variances towards a common one: G. K. Smyth, "Linear models and empirical Bayes methods", Statistical
//     Applications in Genetics and Molecular Biology 3 (2004), here one-sided and with a fixed weight;
//   degrees of freedom of a difference: F. E. Satterthwaite, Biometrics Bulletin 2 (1946); B. L. Welch, Biometrika 34
//     (1947).
// Its constants are part of the method "level"; none is an option.

/// The resolution of the file's step times, in log seconds: smaller scatter counts as none.
inline constexpr double time_resolution = 1e-7;

/// Where the level of a block comes from.
enum class LevelSource : std::uint8_t {
  neighbours,  // the other blocks of the session, near ones most
  round,       // the other blocks of its round
};

/// The estimates for one group, in log seconds.
struct LevelGroup {
  int blocks = 0;
  int set_aside = 0;        // outliers with zero weight
  double location = 0;      // beyond the level
  double scale = 0;         // for one block, from medians; at least the scale of all blocks
  double own_variance = 0;  // for one block
  double variance = 0;      // shrunk towards the common one, never below own_variance
  double degrees = 0;       // degrees of freedom of `variance`
};

struct LevelFit {
  std::vector<LevelGroup> groups;
  std::vector<double> influence;  // per block: its distance from its group's location, down-weighted when far
  std::vector<double> level;      // per block: log seconds that a block of group 0 would take at that time
  double common_variance = 0;     // for one block
  double time_constant_s = 0;     // time constant of the chosen decay; meaningless for LevelSource::round
};

/// Fits the model. The blocks must come from keep_with_neighbour (for LevelSource::round, keep_with_round), and every
/// group from 0 to the highest must have at least one.
LevelFit fit_level(std::span<const LevelBlock> blocks, LevelSource source = LevelSource::neighbours);

/// Returns the interval of a group's location minus the reference's at confidence 1 - alpha, `widening` times as wide
/// as the scatter alone implies. n: the blocks of the group.
ConfidenceInterval level_interval(const LevelFit& fit, int group, double alpha, double widening = 1);

/// Returns how many rounds bring that interval's half-width below `distance` if locations and scatter stay as they are.
/// At most max_rounds.
int level_rounds_to_reach(double distance, const LevelFit& fit, int group, double alpha, double widening = 1);

// The guards test the assumptions that the level model makes beyond pairs within rounds. Their thresholds are part of
// the method.

/// Whether one kind of block is slower or faster: a one-way analysis of variance with R. A. Fisher's F.
struct KindEffect {
  double p_value = 1;
  int slowest = 0;  // the kind with the slowest blocks
  bool found() const { return p_value < 0.05; }
};

/// Tests the blocks' influence by the case that ran before them in the session (B. Jones and M. G. Kenward, "Design and
/// Analysis of Cross-Over Trials"); kinds are groups.
KindEffect find_carry_over(std::span<const LevelBlock> blocks, const LevelFit& fit);

/// Whether a case's blocks in successive rounds deviate in the same direction, so that the case drifts in its own way.
/// The correlation is that of influence, pooled over cases, with the baseline's copies separate, and corrected for the
/// locations that were subtracted.
struct SerialCorrelation {
  double correlation = 0;
  int pairs = 0;  // pairs of blocks in successive rounds of a session
  bool found() const { return pairs > 0 && correlation > 2 / std::sqrt(pairs); }
  /// Returns the factor to widen intervals by: 1 if nothing was found, else sqrt((1 + r) / (1 - r)), as for the mean of
  /// a first-order autoregression (G. E. P. Box and G. M. Jenkins, "Time Series Analysis").
  double widening() const;
};
SerialCorrelation find_serial_correlation(std::span<const LevelBlock> blocks, const LevelFit& fit);

/// The outlying blocks of a group, more than three scales from its location. If so many of the sweep's blocks are
/// outlying that chance may have disturbed most blocks of a group, the outlying ones may be the undisturbed ones.
struct BlocksApart {
  int blocks = 0;            // all blocks of the group
  int below = 0, above = 0;  // outlying blocks
  double below_off = 0,
         above_off = 0;  // median offset from the location, in log seconds; 0: none
};

/// How far an interval must extend to cover the locations of the outlying blocks: low <= 0 <= high, in log seconds. A
/// group's outliers count if chance, at the sweep's share of outlying blocks, disturbs all its others with a
/// probability above alpha / 2.
struct Reach {
  double low = 0, high = 0;
  bool any() const { return low < 0 || high > 0; }
};
Reach reach_to_apart(std::span<const BlocksApart> groups, int group, double alpha);
/// Returns how many rounds would remove the reach if the shares of outlying blocks stay as after `rounds`. At most
/// max_rounds.
int rounds_to_tell_apart(std::span<const BlocksApart> groups, int group, double alpha, int rounds);

}  // namespace harness::analysis
