#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <vector>

#include "analysis/estimator.h"
#include "store/result.h"

namespace harness::analysis {

// How fast the machine was while the sweep ran, by the level model (level_model.h): for people to look at, and to find
// the moment at which something changed. No verdict rests on it. docs/method.md has the formulas.

/// A finished block, whose `seconds` can be compared between cases (comparable_blocks), and the machine's level just
/// then.
struct CourseBlock : FinishedBlock {
  double level_seconds = 0;  // what the baseline's step would have taken, judged by the other blocks
  double machine = 0;        // log seconds without what its case differs in from the baseline
  bool set_aside = false;    // too far off the others of its case to count
};

/// The machine became faster or slower from one block to the next and stayed so.
struct LevelJump {
  std::size_t first = 0;      // of LevelCourse::blocks: the first one after it
  double log_change = 0;      // of the time; above 0: slower
  double standard_error = 0;  // of log_change, had nothing changed
};

struct LevelCourse {
  std::vector<CourseBlock> blocks;  // by session, within a session by time
  std::vector<LevelJump> jumps;     // in that order
};

/// The course of the sweeps that comparable_blocks() returns. Empty where there is no block of the baseline, or no
/// session with two blocks at different times. The blocks of each further sweep are put where those of the first are:
/// without the median of what sets them apart.
LevelCourse level_course(std::span<const SweepBlocks> sweeps);
LevelCourse level_course(const store::Result& result);

/// Log change of the machine's median from the first third of the blocks to the last; NaN with fewer than 15 blocks or
/// more than one session.
double level_drift(const LevelCourse& course);

/// "12 % slower", of a log change of the time.
std::string change_in_words(double log_change);

}  // namespace harness::analysis
