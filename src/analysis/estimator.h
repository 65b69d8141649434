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

// From the blocks of a sweep to the effect of each case.

inline constexpr std::int32_t no_case = -1;

/// The evidence of a sweep, of an operation at one of its sizes. `seconds` of the blocks are comparable between cases:
/// per unit of work, in terms of the baseline's step, where the cases' steps hold different amounts of it.
struct SweepBlocks {
  std::vector<FinishedBlock> blocks;  // in the order of the file
  std::int32_t baseline = 0;          // case index
  std::int32_t control = no_case;     // of the baseline's copy, where there is one
};

/// How a case's time compares with the baseline's.
struct Question {
  std::int32_t case_index = 0;
  double alpha = std::numeric_limits<double>::quiet_NaN();  // of the interval: family_alpha()
  double smallest_effect = 0.01;
};

/// An estimator's result for one case.
struct Estimate {
  ConfidenceInterval log_ratio;  // of the case's time to the baseline's
  int rounds = 0;                // of the case that it rests on; 0: nothing is known
  int rounds_needed = 0;         // should the verdict be unresolved: about how many would settle it, at most max_rounds
  bool two_states = false;       // some blocks lie apart, and the interval reaches to them (level_model.h)
};

/// The findings of the level model about a sweep, of an operation about one of its sizes, including the objections of
/// its guards.
struct LevelFindings {
  std::int32_t reference = 0;         // the baseline, at its size
  double block_deviation = 0;         // of one block from the level, in log seconds
  double time_constant_s = 0;         // how far the neighbourhood of a block reaches; infinite: the whole session
  std::int32_t carry_over = no_case;  // the case after which blocks are slowest, if the case before matters; then
                                      // the level is the mean of the round's other blocks
  double serial_correlation = 0;      // of a case's blocks from round to round
  double widening = 1;                // of all intervals, for that correlation
  std::optional<double>
      baseline_left;  // the control's log ratio, if it moved: then the baseline alone is the reference
  struct SetAside {
    std::int32_t case_index = no_case;
    int set_aside = 0, blocks = 0;
  };
  std::vector<SetAside> set_aside;  // of the cases that have blocks too far off to count
  /// The rounds of three blocks or more in which the machine was fastest and slowest, by the medians of their blocks
  /// without what the cases differ in. For people to look at; no verdict rests on it. Nothing where they differ by no
  /// more than 10 %, or by less than six standard errors.
  struct Range {
    std::size_t fastest = 0, slowest = 0;  // of Result::blocks: the first block of each round
    double log_change = 0;                 // of the time, from the fastest to the slowest
  };
  std::optional<Range> range;
  int blocks = 0;  // in the model
};

struct SweepEstimate {
  std::vector<Estimate> answers;       // one per question, in their order
  std::optional<LevelFindings> level;  // nothing where there is no level to estimate
};
using Estimator = SweepEstimate (*)(const SweepBlocks& sweep, std::span<const Question> questions);

/// The estimator of a result: the level model (estimate_level), or for steps in virtual time, which have no scatter,
/// the ratio of the predicted times. `declared`: what the file says, "level" or "predicted". Throws Error for another.
Estimator estimator_named(std::string_view declared);
/// Whether a file declares that its steps are virtual time, so that nothing in it is proven.
inline bool is_predicted(std::string_view declared) {
  return declared == "predicted";
}

/// Pairs below which there is no interval: of two or three, chance alone makes some very narrow, and two that happen to
/// agree would prove anything.
inline constexpr int least_pairs = 4;

/// The log ratios of a case's blocks to the baseline's in the rounds in which both finished in one session, in order of
/// rounds.
std::vector<double> paired_log_ratios(const SweepBlocks& sweep, std::int32_t case_index);

/// Compares each case with the baseline of its round, so that what a round's blocks share cancels: mean and t interval
/// of the log ratios to the geometric mean of the baselines that finished in the round; of the control to the baseline.
/// Fewer than least_pairs give the centre alone.
SweepEstimate estimate_mean_pairs(const SweepBlocks& sweep, std::span<const Question> questions);

/// Rounds, and blocks of a case, below which the level model gives no interval.
inline constexpr int least_level_rounds = 5;

/// The level model (level_model.h) with its guards, as docs/method.md has them. The control's question is answered
/// first and alone; where it moved, the baseline alone is the reference, and LevelFindings::baseline_left says so.
///
/// Fewer than least_level_rounds rounds or blocks of the reference are no ground for a level: estimate_mean_pairs then
/// answers. A case with fewer blocks than that gets a number without an interval.
SweepEstimate estimate_level(const SweepBlocks& sweep, std::span<const Question> questions);

// How many rounds a sweep needs.

/// The smallest effect that `rounds` rounds of the level model resolve with 80 % probability when a block is off the
/// machine's level by standard deviation `block_deviation` and `comparisons` are made, as a share of the step time. A
/// verdict must clear smallest_effect, so it is more than that. Infinite for fewer than least_pairs rounds, which give
/// no verdict.
double resolvable_effect(int rounds, int comparisons, double block_deviation, double smallest_effect,
                         double confidence);

/// How far the centre of a log ratio is from the nearer of the two thresholds: the half width that would settle it.
double distance_to_threshold(const ConfidenceInterval& interval, double smallest_effect);

/// Stands for "not with this noise".
inline constexpr int max_rounds = 1000;
/// The fewest rounds beyond the present ones, at most max_rounds, of which reached(rounds) says yes, as it does of all
/// that are more.
int fewest_rounds(int now, const std::function<bool(int)>& reached);
/// Those that bring the half-width of a t interval below `distance` if centre and scatter stay what they are now.
int rounds_to_reach(double distance, const ConfidenceInterval& now, double alpha);

/// The finished blocks of a sweep, with times that can be compared between cases: per unit of work (token, byte on the
/// bus, FLOP), in terms of the baseline's step, where both amounts are known. A larger batch is not slower for taking
/// longer. One element for the baseline and the cases that are compared with it and, of an operation, one for each
/// further size. Nothing without a baseline.
std::vector<SweepBlocks> comparable_blocks(const store::Result& result);

/// How many comparisons share the error of the sweep: one for every change that can run here, at each size.
int declared_comparisons(const store::Result& result);

/// One question per case of the file, in its order. Changes share the error of the family (Bonferroni): every change
/// that was planned counts, whether or not it finished, and at whatever size. The control has its own, which its sizes
/// share.
std::vector<Question> questions_of(const store::Result& result);

// A sweep may look at its results more than once, and measure a settled case no more, without more false verdicts than
// it declared: each look spends a part of the error (docs/method.md, "Looks").

/// In place of a number of rounds.
inline constexpr int at_the_end = std::numeric_limits<int>::max();

/// A moment at which the blocks so far decide.
struct Look {
  int rounds = at_the_end;  // that are over by then; at_the_end: all there are, with nothing to follow
  double share = 1;         // of each comparison's error, spent by this look
};

/// The looks that have taken place: the declared ones whose rounds are over and, where the sweep ended between two, one
/// at the round that it reached. Look n after look p spends (n - p) / R of the error, R being the rounds that were
/// declared when it was taken (Lan and DeMets, Biometrika 70, 1983, with linear spending). Without declared looks: one,
/// at the end, of all the error.
std::vector<Look> looks_of(const store::Result& result);

/// The rounds after which the file looks; empty: at the end only. Throws Error if they do not ascend.
std::vector<int> declared_looks(const store::Result& result);
/// What --rounds takes at most.
inline constexpr int most_declared_rounds = 10000;
/// How many rounds the sweep may have at most.
int declared_rounds(const store::Result& result);
/// How many rounds are over: none of their blocks is still to be measured, and nothing after them was.
int rounds_over(const store::Result& result);

/// The share of sweeps like this, with nothing that differs, that show a false verdict at most. It is more than what
/// was declared where rounds were added after the results had been seen: who adds N - R rounds to R spends (N - R) / N
/// of the error once more.
double error_bound(const store::Result& result);

struct LookByLook {
  std::vector<Estimate> answers;      // one per question: of the look that settled it, else of the last
  std::vector<int> settled_after;     // rounds; 0: not settled, or there is one look
  std::vector<LevelFindings> levels;  // of the last look; none where there is no level to estimate
};

/// Asks the questions at every look, with the blocks of the rounds before it. A question whose verdict is settled
/// (faster, slower or same) keeps that answer, and blocks that its case has later do not count. Those about the
/// baseline and its copy are asked at the last look, with all of their alpha.
LookByLook look_by_look(SweepBlocks sweep, std::span<const Question> questions, std::span<const Look> looks,
                        Estimator estimator);
/// Asks each question at every look in the sweep of `sweeps` that has its case, each of which can add a level;
/// comparable_blocks() makes `sweeps` of the file.
LookByLook look_by_look(const store::Result& result, std::span<const SweepBlocks> sweeps,
                        std::span<const Question> questions, std::span<const Look> looks, Estimator estimator);

}  // namespace harness::analysis
