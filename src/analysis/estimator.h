#pragma once

#include <cstdint>
#include <limits>
#include <span>
#include <string_view>
#include <vector>

#include "analysis/blocks.h"
#include "analysis/statistics.h"

namespace harness::analysis {

// From the blocks of a sweep to the effect of each case. An estimator sees all of them, with case, round, session and
// time, so that it may pair blocks, fit a model of drift, or both. Adding one: a source file with a function of type
// Estimator, and a line in the table of estimator.cpp.

/// The evidence of a sweep. `seconds` of the blocks are comparable between cases: per unit of work, in terms of the
/// baseline's step, where the cases' steps hold different amounts of it.
struct SweepBlocks {
  std::vector<FinishedBlock> blocks;  // in the order of the file
  std::int32_t baseline = 0;          // case index
};

struct Question {
  std::int32_t case_index = 0;
  double alpha = 1 - confidence;  // of the interval; smaller where several comparisons are made together
  double smallest_effect = 0.01;
};

/// What an estimator says of one case.
struct Estimate {
  ConfidenceInterval log_ratio;  // of the case's time to the baseline's
  int pairs = 0;                 // how much it rests on: rounds in which both finished; 0: nothing is known
  int rounds_needed = 0;         // should the verdict be unresolved: about how many would settle it, at most max_rounds
  double deviation = std::numeric_limits<double>::quiet_NaN();  // of the log ratios, between rounds
};

/// One estimate per question, in their order.
using Estimator = std::vector<Estimate> (*)(const SweepBlocks& sweep, std::span<const Question> questions);

/// What verdicts rest on.
enum class EstimatorKind : std::uint8_t {
  yuen,  // "yuen": the trimmed mean of pairs within rounds, with Yuen's interval
  sign,  // "sign": the median of the same pairs, with its exact interval
};
Estimator estimator_of(EstimatorKind kind);
/// By the name on the command line. Throws Error for an unknown one.
EstimatorKind estimator_named(std::string_view name);

}  // namespace harness::analysis
