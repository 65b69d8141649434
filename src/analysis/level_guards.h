#pragma once

#include <cmath>
#include <span>

#include "analysis/level_model.h"

namespace harness::analysis {

// What the level model assumes beyond pairs within rounds, and how the data speak against it. The thresholds are part
// of the method.

/// Whether blocks are slower or faster by something that they have one kind of: a one-way analysis of variance with
/// R. A. Fisher's F.
struct KindEffect {
  double p_value = 1;
  int slowest = 0;  // the kind whose blocks are slowest
  bool found() const { return p_value < 0.05; }
};

/// The blocks' influence by the case that ran before them in the session or the shared process; kinds are groups. B.
/// Jones and M. G. Kenward, "Design and Analysis of Cross-Over Trials", for carry-over.
KindEffect find_carry_over(std::span<const LevelBlock> blocks, const LevelFit& fit);
/// How far blocks are off their group, by their place in the process that they share, from 0. The first in a process
/// may find cold what the others find warm, and a process may age. Of the ranks of these distances (W. H. Kruskal and
/// W. A. Wallis, JASA 47, 1952), because a place that is far off has no influence. Only where pools are processes.
KindEffect find_place_effect(std::span<const LevelBlock> blocks, const LevelFit& fit);

/// Whether a case's blocks in successive rounds are off in the same direction: the case drifts in a way of its own, or
/// meets the conditions that come and go in a way of its own. The correlation is that of influence, pooled over cases,
/// the copies of the baseline apart, and corrected for the locations that were taken out of it.
struct SerialCorrelation {
  double correlation = 0;
  int pairs = 0;  // of blocks in successive rounds of a session
  bool found() const { return pairs > 0 && correlation > 2 / std::sqrt(pairs); }
  /// By how much intervals are to be widened: 1 where nothing was found, else sqrt((1 + r) / (1 - r)), as for the mean
  /// of a first-order autoregression (G. E. P. Box and G. M. Jenkins, "Time Series Analysis").
  double widening() const;
};
SerialCorrelation find_serial_correlation(std::span<const LevelBlock> blocks, const LevelFit& fit);

/// The blocks of a group that lie more than three scales off the others, where the location hardly sees them. Most
/// blocks of a group are taken for undisturbed. Where so many of the sweep lie apart that chance may have disturbed
/// most blocks of a group, those that lie apart may be the undisturbed ones, and the location may be theirs.
struct BlocksApart {
  int blocks = 0;                       // of the group
  int below = 0, above = 0;             // how many lie apart
  double below_off = 0, above_off = 0;  // their medians from the location, in log seconds; 0 if there are none
};
std::vector<BlocksApart> find_blocks_apart(std::span<const LevelBlock> blocks, const LevelFit& fit);

/// How far an interval must reach beyond its ends for the locations of the blocks apart: low <= 0 <= high, in log
/// seconds. A group's count if chance, at the sweep's share of blocks apart, disturbs all its others with a probability
/// of more than alpha / 2.
struct Reach {
  double low = 0, high = 0;
  bool any() const { return low < 0 || high > 0; }
};
Reach reach_to_apart(std::span<const BlocksApart> groups, std::span<const GroupWeight> contrast, double alpha);
/// How many rounds would end that, if the shares of blocks apart stay what they are after `rounds`. At most max_rounds.
int rounds_to_tell_apart(std::span<const BlocksApart> groups, std::span<const GroupWeight> contrast, double alpha,
                         int rounds);

}  // namespace harness::analysis
