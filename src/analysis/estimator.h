#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "analysis/blocks.h"
#include "analysis/statistics.h"

namespace harness::analysis {

// From the blocks of a sweep to the effect of each case.

/// No case.
inline constexpr std::int32_t no_case = -1;

/// The evidence of a sweep. `seconds` of the blocks are comparable between cases: per unit of work, in terms of the
/// baseline's step, where the cases' steps hold different amounts of it.
struct SweepBlocks {
  std::vector<FinishedBlock> blocks;  // in the order of the file
  std::int32_t baseline = 0;          // case index
  std::int32_t control = no_case;     // of the baseline's copy, where there is one
  bool pools_are_processes = false;   // which several blocks shared, one after another; else they are sessions
};

/// A part of a contrast: a weighted sum of log times whose weights add up to 0.
struct CaseWeight {
  std::int32_t case_index = 0;
  double weight = 1;
};

struct Question {
  std::int32_t case_index = 0;
  double alpha = std::numeric_limits<double>::quiet_NaN();  // of the interval: 1 - confidence, or a share of that where
                                                            // several comparisons are made together
  double smallest_effect = 0.01;
  std::vector<CaseWeight> contrast = {};  // what is asked for; empty: the case against the baseline
};
/// The contrast that a question asks for, spelt out.
std::vector<CaseWeight> contrast_of(const Question& question, std::int32_t baseline);

/// What an estimator says of one case.
struct Estimate {
  ConfidenceInterval log_ratio;  // of the case's time to the baseline's, or of the contrast asked for
  int rounds = 0;                // of the case that it rests on; 0: nothing is known
  int rounds_needed = 0;         // should the verdict be unresolved: about how many would settle it, at most max_rounds
  bool two_states = false;       // some blocks lie apart, and the interval reaches to them (level_guards.h)
};

/// What estimating the level of the machine showed, the objections of its guards included.
struct LevelFindings {
  double block_deviation = 0;         // of one block from the level, in log seconds
  double time_constant_s = 0;         // how far the neighbourhood of a block reaches; infinite: the whole session
  std::int32_t carry_over = no_case;  // the case after which blocks are slowest, if the case before matters; then
                                      // the level is the mean of the round's other blocks
  std::optional<int> slowest_place;   // in the process that blocks share, from 0, if the place matters
  double serial_correlation = 0;      // of a case's blocks from round to round
  double widening = 1;                // of all intervals, for that correlation
  std::optional<double>
      baseline_left;  // the control's log ratio, if it moved: then the baseline alone is the reference
  struct SetAside {
    std::int32_t case_index = no_case;
    int set_aside = 0, blocks = 0;
  };
  std::vector<SetAside> set_aside;  // of the cases that have blocks too far off to count
  int blocks = 0;                   // in the model
};

struct SweepEstimate {
  std::vector<Estimate> answers;       // one per question, in their order
  std::optional<LevelFindings> level;  // nothing where there is no level to estimate
};
using Estimator = SweepEstimate (*)(const SweepBlocks& sweep, std::span<const Question> questions);

/// The estimator of a result: the level model (level_estimator.h), or for steps in virtual time, which have no scatter,
/// the ratio of the predicted times. `declared`: what the file says, "level" or "predicted". Throws Error for another.
Estimator estimator_named(std::string_view declared);

}  // namespace harness::analysis
