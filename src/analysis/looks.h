#pragma once

#include <limits>
#include <span>
#include <vector>

#include "analysis/estimator.h"

namespace harness::analysis {

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
