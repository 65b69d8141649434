#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <limits>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "analysis/cases.h"
#include "analysis/verdict.h"
#include "store/result.h"

namespace harness::analysis {

// Estimates the effect of each case from the blocks of a sweep.

inline constexpr std::int32_t no_case = -1;

/// The evidence of a sweep or, for an operation, of one of its sizes. The blocks' `seconds` are comparable between
/// cases: if the cases' steps hold different amounts of work, they are scaled to the work of the baseline's step.
struct SweepBlocks {
  std::vector<FinishedBlock> blocks;  // in the order of the file
  std::int32_t baseline = 0;          // index of the baseline case
  std::int32_t control = no_case;     // index of the baseline's copy, if any
};

/// Asks how a case's time compares with the baseline's.
struct Question {
  std::int32_t case_index = 0;
  double alpha = store::not_known;  // for the interval: family_alpha()
  double smallest_effect = 0.01;
};

/// An estimator's result for one case.
struct Estimate {
  ConfidenceInterval log_ratio;  // the case's time over the baseline's; n: rounds of the case, 0: nothing is known
  int rounds_needed = 0;         // if the verdict is unresolved: about how many would settle it, at most max_rounds
  bool two_states = false;       // some blocks are outlying, and the interval reaches to them (level_model.h)
  int settled_after = 0;         // rounds of the look that settled it; 0: not settled, or there is one look
};

/// The level model's findings about a sweep or, for an operation, one of its sizes, with its guards' objections.
struct LevelFindings {
  std::int32_t reference = 0;             // the baseline, at its size
  double block_deviation = 0;             // standard deviation of a block from the level, in log seconds
  std::optional<double> time_constant_s;  // decay time of a neighbour's weight; infinite: the whole session counts
                                          // alike; nothing: the level is that of the rounds (carry_over)
  std::int32_t carry_over = no_case;      // the case after which blocks are slowest, if the preceding case matters; the
                                          // level is then the mean of the round's other blocks
  double serial_correlation = 0;          // correlation of a case's blocks in successive rounds
  double widening = 1;                    // factor on all intervals for that correlation
  std::optional<double>
      baseline_left;  // the control's log ratio, if it moved; the baseline alone is then the reference
  struct SetAside {
    std::int32_t case_index = no_case;
    int set_aside = 0, blocks = 0;
  };
  std::vector<SetAside> set_aside;  // cases with blocks too far off to count
  /// The fastest and the slowest round of at least three blocks, by the medians of their blocks with case effects
  /// removed. Informational: no verdict rests on it. Nothing if they differ by at most 10 %, or by less than six
  /// standard errors.
  struct Range {
    std::size_t fastest = 0, slowest = 0;  // the first block of each round, as index in Result::blocks
    double log_change = 0;                 // log ratio of times, slowest over fastest
  };
  std::optional<Range> range;
  int blocks = 0;  // blocks in the model
};

struct SweepEstimate {
  std::vector<Estimate> answers;       // one per question, in their order
  std::optional<LevelFindings> level;  // nothing if no level was estimated
};
using Estimator = SweepEstimate (*)(const SweepBlocks& sweep, std::span<const Question> questions);

/// Returns the estimator of a result: the level model (estimate_level) or, for steps in virtual time, which have no
/// scatter, the ratio of the predicted times. `declared`: the name in the file, "level" or "predicted". Throws Error
/// for any other.
Estimator estimator_named(std::string_view declared);
/// Whether a file declares that its steps ran in virtual time, so that it proves nothing.
inline bool is_predicted(std::string_view declared) {
  return declared == "predicted";
}

/// The fewest pairs for an interval. With two or three, some intervals are very narrow by chance, and two values that
/// happen to agree would prove anything.
inline constexpr int least_pairs = 4;

/// Returns the log ratios of a case's blocks to the baseline's, for rounds in which both finished in one session, in
/// order of rounds.
std::vector<double> paired_log_ratios(const SweepBlocks& sweep, std::int32_t case_index);

/// Compares each case with the baseline of its round, which cancels whatever a round's blocks share. Estimates the mean
/// and t interval of the log ratios to the geometric mean of the baselines that finished in the round; for the control,
/// to the baseline. Fewer than least_pairs give only the centre.
SweepEstimate estimate_mean_pairs(const SweepBlocks& sweep, std::span<const Question> questions);

/// The fewest rounds, and blocks of a case, for an interval of the level model.
inline constexpr int least_level_rounds = 5;

/// The level model (level_model.h) with its guards, as in docs/method.md. The control's question is answered first and
/// alone; if the control moved, the baseline alone is the reference, and LevelFindings::baseline_left says so.
///
/// With fewer than least_level_rounds rounds, or blocks of the reference, estimate_mean_pairs answers instead. A case
/// with fewer blocks than that gets a ratio without an interval.
SweepEstimate estimate_level(const SweepBlocks& sweep, std::span<const Question> questions);

// How many rounds a sweep needs.

/// Returns the smallest effect, as a share of the step time, that `rounds` rounds of the level model resolve with 80 %
/// probability. `block_deviation`: standard deviation of a block from the machine's level. `comparisons`: how many are
/// made. The result exceeds `smallest_effect`, which a verdict must clear. Infinite for fewer than least_pairs rounds,
/// which give no verdict.
double resolvable_effect(int rounds, int comparisons, double block_deviation, double smallest_effect,
                         double confidence);

/// Returns the distance from the centre of a log ratio to the nearer threshold: the half-width that would settle it.
double distance_to_threshold(const ConfidenceInterval& interval, double smallest_effect);

/// Means "not with this noise".
inline constexpr int max_rounds = 1000;
/// Returns the fewest rounds above `now`, at most max_rounds, that satisfy `reached`, which must be monotonic.
int fewest_rounds(int now, const std::function<bool(int)>& reached);
/// Returns how many bring the half-width of a t interval below `distance` if centre and scatter stay as they are.
int rounds_to_reach(double distance, const ConfidenceInterval& now, double alpha);

/// Returns the finished blocks of a sweep with times that are comparable between cases: if the work of both steps is
/// known (tokens, bytes on the bus, FLOP), times are scaled to the baseline's, so that a larger batch is not slower for
/// taking longer. One element for the baseline and the cases that are compared with it and, for an operation, one for
/// each further size. Empty without a baseline.
std::vector<SweepBlocks> comparable_blocks(const store::Result& result);

/// Returns how many comparisons share the error of the sweep: one per change that can run here, at each size.
int declared_comparisons(const store::Result& result);

/// Returns one question per case of the file, in file order. Changes share the family's error (Bonferroni): every
/// planned change that can run counts at every size, finished or not. The controls of all sizes share an error of their
/// own.
std::vector<Question> questions_of(const store::Result& result);

// A sweep may look at its results more than once, and stop measuring settled cases, without more false verdicts than
// declared: each look spends a part of the error (docs/method.md, "Looks").

/// Stands for the number of rounds of the final look.
inline constexpr int at_the_end = std::numeric_limits<int>::max();

/// A point at which the blocks so far decide.
struct Look {
  int rounds = at_the_end;  // rounds over by then; at_the_end: all of them
  double share = 1;         // share of each comparison's error that this look spends
};

/// Returns the looks that have taken place: the declared ones whose rounds are over and, if the sweep ended between
/// two, one at the round that it reached. Look n after look p spends (n - p) / R of the error, where R is the number of
/// rounds declared when it was taken (Lan and DeMets, Biometrika 70, 1983, with linear spending). Without declared
/// looks: one at the end, with all of the error.
std::vector<Look> looks_of(const store::Result& result);

/// Returns the rounds after which the file looks; empty: at the end only. Throws Error if they do not ascend.
std::vector<int> declared_looks(const store::Result& result);
/// The largest value of --rounds.
inline constexpr int most_declared_rounds = 10000;
/// Returns the most rounds that the sweep may have.
int declared_rounds(const store::Result& result);
/// Returns how many rounds are over: none of their blocks is still to be measured, and no later block was measured.
int rounds_over(const store::Result& result);

/// Returns an upper bound on the share of sweeps like this, with no real differences, that show a false verdict. It
/// exceeds the declared error if rounds were added after the results had been seen: extending R to N rounds spends (N -
/// R) / N of the error again.
double error_bound(const store::Result& result);

/// Asks the questions at every look, with the blocks of the rounds before it. A question with a settled verdict
/// (faster, slower or same) keeps that answer, and later blocks of its case do not count; another one has that of the
/// last look, as has the level. Questions about the baseline and its copy are asked at the last look, with all of their
/// alpha.
SweepEstimate look_by_look(SweepBlocks sweep, std::span<const Question> questions, std::span<const Look> looks,
                           Estimator estimator);

}  // namespace harness::analysis
